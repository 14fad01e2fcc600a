// The parent forks while another of its threads holds an absl::Mutex, and the child locks the mutex. With the argument
// "waiter", a second thread of the parent waits for the mutex. With "pointer", a second thread has only a pointer to the
// mutex, and uses the mutex later. With "self", the child itself locks the mutex twice, and the other threads of the
// parent do not have it. With "unseen", a thread takes the mutex in one function and releases it in another one, so that
// its stack does not show that it holds the mutex. Repaired: the parent forks while the mutex is free.
#include <absl/synchronization/mutex.h>
#include <absl/synchronization/notification.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

namespace {

absl::Mutex g_queue_mutex;
absl::Notification g_held;
absl::Notification g_end;
absl::Notification g_other_began;
pid_t g_other_tid;

__attribute__((noinline)) void hold_queue() {
  absl::MutexLock lock(&g_queue_mutex);
  g_held.Notify();
  g_end.WaitForNotification();
}

__attribute__((noinline)) void use_queue_later(absl::Mutex* mutex) {
  g_other_began.Notify();
  g_end.WaitForNotification();
  absl::MutexLock lock(mutex);
}

__attribute__((noinline)) void wait_for_queue(absl::Mutex* mutex) {
  g_held.WaitForNotification();
  g_other_tid = static_cast<pid_t>(syscall(SYS_gettid));
  g_other_began.Notify();
  absl::MutexLock lock(mutex);
}

__attribute__((noinline)) void take_queue() ABSL_NO_THREAD_SAFETY_ANALYSIS { g_queue_mutex.Lock(); }
__attribute__((noinline)) void leave_queue() ABSL_NO_THREAD_SAFETY_ANALYSIS { g_queue_mutex.Unlock(); }

__attribute__((noinline)) void hold_unseen() {
  take_queue();
  g_held.Notify();
  g_end.WaitForNotification();
  leave_queue();
}

// True once the thread sleeps in a futex.
bool sleeps_in_futex(pid_t tid) {
  char path[64];
  char call[16] = {};
  std::snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
  std::FILE* const file = std::fopen(path, "r");
  if (file == nullptr) return false;
  const bool is_read = std::fgets(call, sizeof call, file) != nullptr;
  std::fclose(file);
  return is_read && std::atoi(call) == SYS_futex;
}

__attribute__((noinline)) void lock_in_child() { absl::MutexLock lock(&g_queue_mutex); }

__attribute__((noinline)) void lock_twice_in_child() {
  absl::MutexLock lock(&g_queue_mutex);
  lock_in_child();
}

}  // namespace

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);  // it would abort where a lock is taken twice
  const std::string mode = argc > 1 ? argv[1] : "";
#ifdef REPAIRED
  const bool has_holder = false;
#else
  const bool has_holder = mode != "self";
#endif
  std::thread holder([&] {
    if (!has_holder) {
      g_held.Notify();
      g_end.WaitForNotification();
    } else if (mode == "unseen") {
      hold_unseen();
    } else {
      hold_queue();
    }
  });
  std::thread other;
  if (mode == "waiter") {
    other = std::thread(wait_for_queue, &g_queue_mutex);
    g_other_began.WaitForNotification();
    while (!sleeps_in_futex(g_other_tid)) std::this_thread::yield();
  }
  if (mode == "pointer" || mode == "self" || mode == "unseen") {
    other = std::thread(use_queue_later, &g_queue_mutex);
    g_other_began.WaitForNotification();
  }
  g_held.WaitForNotification();
  const pid_t child = fork();
  if (child == 0) {
    mode == "self" ? lock_twice_in_child() : lock_in_child();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  g_end.Notify();
  holder.join();
  if (other.joinable()) other.join();
  return status == 0 ? 0 : 1;
}
