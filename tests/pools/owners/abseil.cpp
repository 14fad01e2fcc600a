// The parent forks while another of its threads holds an absl::Mutex, and the child locks the mutex. Repaired: the
// parent forks while the mutex is free.
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
