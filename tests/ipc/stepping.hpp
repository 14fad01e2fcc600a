// Steps a child through an operation, one instruction at a time, and kills it between two instructions.
#pragma once

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "child.hpp"
#include "invariants.hpp"

namespace forksight::ipc::test {

// The point at which a child is killed. after_change: the child is killed after `count` instructions that changed the
// segment. Survivors see only the segment and the death. So for survivors, a death at any other instruction is the same
// as a death after the last change. after_step: the child is killed after `count` instructions. To get there quickly,
// the child first runs until it has reached a breakpoint at `address` `hits` times. Then it makes `steps_after` single
// steps.
struct killing_point {
  enum class unit { after_change, after_step } by = unit::after_change;
  unsigned long count = 0;
  std::uintptr_t address = 0;
  unsigned long hits = 0, steps_after = 0;
};

// The addresses of the instructions that an operation executed, in their order.
class walk {
 public:
  void add(std::uintptr_t address) {
    came_by_.push_back(address);
    times_.push_back(++seen_[address]);
  }
  unsigned long length() const { return came_by_.size(); }
  // Returns the point after n instructions, with the cheapest combination of breakpoint and single steps. One stop at a
  // breakpoint costs as much as three single steps.
  killing_point after(unsigned long n) const;

 private:
  std::vector<std::uintptr_t> came_by_;
  std::vector<unsigned long> times_;  // how often the address had been executed until then, including this time
  std::unordered_map<std::uintptr_t, unsigned long> seen_;
};

inline killing_point walk::after(unsigned long n) const {
  killing_point best{killing_point::unit::after_step, n, 0, 0, n};
  unsigned long cost = n;
  // After m instructions, the child is about to execute the instruction at came_by_[m]. A breakpoint at m = 0 would
  // save nothing, because the child has stopped itself there.
  for (unsigned long m = n; m > 0 && n - m < cost; --m) {
    if (m >= came_by_.size() || n - m + 3 * times_[m] >= cost) continue;
    cost = n - m + 3 * times_[m];
    best = {killing_point::unit::after_step, n, came_by_[m], times_[m], n - m};
  }
  return best;
}

// Stops the calling process. The traced child calls this before and after the operation, so that its tracer sees where
// the operation begins and ends.
inline void stop_here() { syscall(SYS_kill, getpid(), SIGSTOP); }

class stepped {
 public:
  // Runs `prepare` in the child without stops. After the constructor, the child is stopped before the operation.
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
    // If the child failed in `prepare`, it has ended, and waitpid() above has reaped it. If another signal has stopped
    // the child, the destructor of `child_` kills it.
    if (!is_ready_ && !WIFSTOPPED(status)) child_.forget();
  }

  bool is_ready() const { return is_ready_; }
  unsigned long steps() const { return steps_; }

  enum class outcome { killed, completed, failed };
  // Kills the child at `where`, or after the operation if that comes first. Waits for the child.
  outcome kill_at(const killing_point& where, const words& memory) {
    const outcome how =
        where.by == killing_point::unit::after_change ? go_to_change(where.count, memory) : go_to(where);
    if (how != outcome::failed) child_.kill_and_wait();
    return how;
  }
  // Steps through the whole operation, and then kills the child. `changes`: gets the numbers, from 1, of the
  // instructions that changed the segment.
  outcome record(walk& came_by, const words& memory, std::vector<unsigned long>& changes) {
    std::vector<char> before(memory.bytes(), memory.bytes() + memory.size());
    outcome how = outcome::killed;
    while (how == outcome::killed) {
      came_by.add(address());
      how = step();
      if (std::memcmp(before.data(), memory.bytes(), before.size()) == 0) continue;
      changes.push_back(came_by.length());
      std::memcpy(before.data(), memory.bytes(), before.size());
    }
    if (how != outcome::failed) child_.kill_and_wait();
    return how;
  }

 private:
  outcome go_to_change(unsigned long count, const words& memory) {
    std::vector<char> before(memory.bytes(), memory.bytes() + memory.size());
    for (unsigned long changes = 0; changes != count;) {
      if (const outcome how = step(); how != outcome::killed) return how;
      if (std::memcmp(before.data(), memory.bytes(), before.size()) == 0) continue;
      ++changes;
      std::memcpy(before.data(), memory.bytes(), before.size());
    }
    return outcome::killed;
  }

  outcome go_to(const killing_point& where) {
    for (unsigned long hits = 0; hits != where.hits; ++hits) {
      if (hits != 0) {
        if (const outcome how = step(); how != outcome::killed) return how;
      }
      if (const outcome how = run_to(where.address); how != outcome::killed) return how;
    }
    for (unsigned long n = 0; n != where.steps_after; ++n) {
      if (const outcome how = step(); how != outcome::killed) return how;
    }
    return outcome::killed;
  }

  // Runs the child until it is about to execute the instruction at `address`.
  outcome run_to(std::uintptr_t address) {
#if defined(__x86_64__)
    void* const at = reinterpret_cast<void*>(address);
    errno = 0;
    const long before = ptrace(PTRACE_PEEKTEXT, child_.pid(), at, nullptr);
    constexpr long kBreak = 0xcc;
    if (errno != 0 || ptrace(PTRACE_POKETEXT, child_.pid(), at, (before & ~0xffL) | kBreak) != 0) return failed();
    const outcome how = resume(PTRACE_CONT);
    if (how != outcome::killed) return how;
    user_regs_struct registers{};
    if (ptrace(PTRACE_GETREGS, child_.pid(), nullptr, &registers) != 0 || registers.rip != address + 1) return failed();
    registers.rip = address;
    if (ptrace(PTRACE_SETREGS, child_.pid(), nullptr, &registers) != 0 ||
        ptrace(PTRACE_POKETEXT, child_.pid(), at, before) != 0) {
      return failed();
    }
    return outcome::killed;
#else
    (void)address;
    return failed();
#endif
  }

  std::uintptr_t address() const {
#if defined(__x86_64__)
    user_regs_struct registers{};
    if (ptrace(PTRACE_GETREGS, child_.pid(), nullptr, &registers) == 0) return registers.rip;
#endif
    return 0;
  }

  outcome step() {
    ++steps_;
    return resume(PTRACE_SINGLESTEP);
  }
  outcome resume(__ptrace_request how) {
    int status = 0;
    if (ptrace(how, child_.pid(), nullptr, nullptr) != 0) return outcome::failed;
    if (waitpid(child_.pid(), &status, 0) != child_.pid()) return outcome::failed;
    if (!WIFSTOPPED(status)) {
      child_.forget();
      return outcome::failed;
    }
    if (WSTOPSIG(status) == SIGTRAP) return outcome::killed;
    if (WSTOPSIG(status) == SIGSTOP) return outcome::completed;
    return failed();
  }
  outcome failed() {
    child_.kill_and_wait();
    return outcome::failed;
  }

  child child_;
  bool is_ready_ = false;
  unsigned long steps_ = 0;
};

}  // namespace forksight::ipc::test
