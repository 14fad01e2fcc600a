// A child process of the test. It makes one call, and reports the result of the call.
#pragma once

#include <sys/types.h>

#include <functional>

namespace forksight::test {

class BlockedProcess {
 public:
  struct Outcome {
    long result = 0;
    int error = 0;
    bool is_done = false;
  };

  explicit BlockedProcess(const std::function<long()>& call);
  ~BlockedProcess();  // kills and reaps the process
  BlockedProcess(const BlockedProcess&) = delete;
  BlockedProcess& operator=(const BlockedProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Blocks until the process sleeps in a system call, or has ended.
  void wait_blocked() const;
  // Blocks until the process has ended.
  Outcome wait_outcome();

 private:
  Outcome* outcome_;  // shared with the process
  pid_t pid_;
  bool is_reaped_ = false;
};

}  // namespace forksight::test
