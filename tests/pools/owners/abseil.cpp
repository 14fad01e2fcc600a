// The parent forks while another of its threads holds an absl::Mutex, and the child locks the mutex. Repaired: the
// parent forks while the mutex is free.
#include <absl/synchronization/mutex.h>
#include <absl/synchronization/notification.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <thread>

int main() {
  const auto queue_mutex = std::make_unique<absl::Mutex>();
  absl::Notification held;
  absl::Notification end;
  std::thread holder([&] {
#ifndef REPAIRED
    absl::MutexLock lock(queue_mutex.get());
#endif
    held.Notify();
    end.WaitForNotification();
  });
  held.WaitForNotification();
  const pid_t child = fork();
  if (child == 0) {
    absl::MutexLock lock(queue_mutex.get());
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  end.Notify();
  holder.join();
  return status == 0 ? 0 : 1;
}
