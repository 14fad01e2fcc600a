// Which processes could end a wait for a child or for the other end of a pipe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "watch/evidence.hpp"
#include "watch/pipes.hpp"
#include "watch/tree.hpp"

namespace forksight::watch {

class WakerFinder {
 public:
  using Clock = std::chrono::steady_clock;

  // Pipes that this process holds itself came from outside of the tree: somebody out there may write to them.
  WakerFinder();

  enum class Answer { kNotAsked, kKnown, kUnknown, kNeedsScan };

  // Fills `wakers` and `wakers_known` for a thread that waits for a child or a pipe; others are left as they are.
  // Pipes are answered from the latest scan; one that it did not look for is noted for the next. Children are those
  // that the tree knows of, or, if `thorough`, those that the kernel tells now, tracees included.
  Answer find(std::int32_t pid, const ThreadSample& thread, const Tree& tree, bool thorough, WaitFacts& facts);

  // Searches the pipes that were asked for in all processes. May take tens of milliseconds on a big machine, so the
  // next scan is due only after a multiple of that.
  bool is_scan_due(Clock::time_point now) const { return now >= next_scan_; }
  void scan(const Tree& tree);

 private:
  Answer find_children(std::int32_t pid, const ThreadSample& thread, const Tree& tree, bool thorough, WaitFacts& facts) const;
  Answer find_pipe_ends(const ThreadSample& thread, WaitFacts& facts);

  std::set<std::uint64_t> outside_;
  std::set<std::uint64_t> scanned_;
  std::set<std::uint64_t> unscanned_;
  std::vector<PipeHolder> holders_;
  bool refused_ = false;
  Clock::time_point next_scan_{};
};

}  // namespace forksight::watch
