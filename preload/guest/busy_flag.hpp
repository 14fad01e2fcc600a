// A flag for work that only one thread may do at a time.
#pragma once

#include <atomic>
#include <cstdint>

namespace forksight {

// The number of forks between the process that loaded the shim and this one. A forked child adds 1 before any other
// work of the shim.
extern std::uint32_t g_fork_depth;

// A flag that was taken at a fork is free in the child. The flag records the g_fork_depth of the process that took
// it. The g_fork_depth of the child is greater.
// async-signal-safe, fork-child-safe.
class BusyFlag {
 public:
  // Takes the flag. False: another thread of this process has the flag, or the calling thread has it already.
  bool take() {
    const std::uint32_t mine = g_fork_depth + 1;
    std::uint32_t taken_in = taken_in_.load(std::memory_order_relaxed);
    return taken_in != mine && taken_in_.compare_exchange_strong(taken_in, mine, std::memory_order_acquire);
  }
  void give_back() { taken_in_.store(0, std::memory_order_release); }

 private:
  std::atomic<std::uint32_t> taken_in_{0};  // g_fork_depth + 1 of the process whose thread has the flag; 0: free
};

}  // namespace forksight
