// A child that is carried through an operation instruction by instruction, and killed between two of them.
#pragma once

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "child.hpp"
#include "invariants.hpp"

namespace forksight::ipc::test {

// Where to kill. after_change: after the n-th instruction that changed the segment; what survivors see is the segment
// and that the process is dead, so these are all the deaths that differ. after_step: after n instructions.
struct killing_point {
  enum class unit { after_change, after_step } by = unit::after_change;
  unsigned long count = 0;
};

// The child says so before the operation, and after it.
inline void stop_here() { syscall(SYS_kill, getpid(), SIGSTOP); }

class stepped {
 public:
  // `prepare` runs freely and ends in the operation's first instruction.
  stepped(const std::function<void()>& prepare, const std::function<void()>& operation)
      : child_([&] {
          if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) return 3;
          prepare();
          stop_here();
          operation();
          stop_here();
          return 0;
        }) {
    int status = 0;
    is_ready_ = waitpid(child_.pid(), &status, 0) == child_.pid() && WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP;
    // A child that asserted has ended already, and was waited for.
    if (!is_ready_) child_.forget();
  }

  bool is_ready() const { return is_ready_; }
  unsigned long steps() const { return steps_; }

  enum class outcome { killed, completed, failed };
  // Kills it there, or where the operation is complete. It is waited for.
  outcome kill_at(const killing_point& where, const words& memory) {
    std::vector<char> before(memory.bytes(), memory.bytes() + memory.size());
    unsigned long changes = 0;
    outcome how = outcome::killed;
    while (where.count != (where.by == killing_point::unit::after_change ? changes : steps_)) {
      how = step();
      if (how != outcome::killed) break;
      if (where.by == killing_point::unit::after_change &&
          std::memcmp(before.data(), memory.bytes(), before.size()) != 0) {
        ++changes;
        std::memcpy(before.data(), memory.bytes(), before.size());
      }
    }
    if (how != outcome::failed) child_.kill_and_wait();
    return how;
  }

 private:
  outcome step() {
    int status = 0;
    if (ptrace(PTRACE_SINGLESTEP, child_.pid(), nullptr, nullptr) != 0) return outcome::failed;
    if (waitpid(child_.pid(), &status, 0) != child_.pid()) return outcome::failed;
    if (!WIFSTOPPED(status)) {
      child_.forget();
      return outcome::failed;
    }
    ++steps_;
    if (WSTOPSIG(status) == SIGTRAP) return outcome::killed;
    if (WSTOPSIG(status) == SIGSTOP) return outcome::completed;
    child_.kill_and_wait();
    return outcome::failed;
  }

  child child_;
  bool is_ready_ = false;
  unsigned long steps_ = 0;
};

}  // namespace forksight::ipc::test
