// Another thread of the parent holds an absl::Mutex when it forks, and the child takes it. Repaired: the parent forks when
// the mutex is free.
#include <absl/synchronization/mutex.h>
#include <absl/synchronization/notification.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace {
absl::Mutex g_queue_mutex;
}

int main() {
  absl::Notification held;
  absl::Notification end;
  std::thread holder([&] {
#ifndef REPAIRED
    absl::MutexLock lock(&g_queue_mutex);
#endif
    held.Notify();
    end.WaitForNotification();
  });
  held.WaitForNotification();
  const pid_t child = fork();
  if (child == 0) {
    absl::MutexLock lock(&g_queue_mutex);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  end.Notify();
  holder.join();
  return status == 0 ? 0 : 1;
}
