// Child processes of a test. The destructor kills a child that still runs, and waits for it, even if the test fails.
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <utility>

#include "forksight/ipc/queue.hpp"

namespace forksight::ipc::test {

// ThreadSanitizer ends a forked child that starts a thread, if the process that forked had several threads. The option
// die_after_fork=0 does not help: ThreadSanitizer then takes the new thread for a thread of the parent, and ends the
// child for that reason.
#ifdef __SANITIZE_THREAD__
constexpr bool kForkedChildMayStartThread = false;
#elif defined(__has_feature)
constexpr bool kForkedChildMayStartThread = !__has_feature(thread_sanitizer);
#else
constexpr bool kForkedChildMayStartThread = true;
#endif
constexpr const char* kNoThreadAfterFork =
    "ThreadSanitizer ends a forked child that starts a thread, if its parent has several threads";

class child {
 public:
  // Runs `body` in a forked child. The value that `body` returns is the child's exit status.
  explicit child(const std::function<int()>& body) : pid_(fork()) {
    if (pid_ < 0) std::abort();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(body());
  }
  child(child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  child& operator=(child&&) = delete;
  child(const child&) = delete;
  child& operator=(const child&) = delete;
  ~child() {
    if (pid_ > 0) kill_and_wait();
  }

  pid_t pid() const { return pid_; }
  void signal(int number) const { kill(pid_, number); }
  // Waits for the child. Returns its exit status, or 128 + the number of the signal that ended it.
  int wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  // Call this after another function has waited for the child. The destructor then does nothing.
  void forget() { pid_ = -1; }
  int kill_and_wait() {
    kill(pid_, SIGKILL);
    return wait();
  }

 private:
  pid_t pid_;
};

// A pipe through which one process lets another process go on: pass() writes one byte, and take() waits for that byte.
class baton {
 public:
  baton() {
    if (pipe(ends_) != 0) std::abort();
  }
  baton(const baton&) = delete;
  baton& operator=(const baton&) = delete;
  ~baton() {
    close(ends_[0]);
    close(ends_[1]);
  }
  void pass() const {
    if (write(ends_[1], "", 1) != 1) std::abort();
  }
  void take() const {
    char byte = 0;
    if (read(ends_[0], &byte, 1) != 1) std::abort();
  }

 private:
  int ends_[2] = {-1, -1};
};

// Forks a consumer that receives a message. Kills the consumer while it still holds the message.
inline void die_with_a_message(const queue& of) {
  const baton holds;
  child consumer([&] {
    auto own = of.reattach_after_fork();
    const auto got = own->receive();
    holds.pass();
    pause();
    return 0;
  });
  holds.take();
  consumer.kill_and_wait();
}

}  // namespace forksight::ipc::test
