// A child of the test that makes one call, and reports its result afterwards.
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
  ~BlockedProcess();  // kills and reaps it
  BlockedProcess(const BlockedProcess&) = delete;
  BlockedProcess& operator=(const BlockedProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Blocks until it sleeps in a system call.
  void wait_blocked() const;
  // Blocks until it has ended.
  Outcome wait_outcome();

 private:
  Outcome* outcome_;  // shared with it
  pid_t pid_;
  bool is_reaped_ = false;
};

}  // namespace forksight::test
