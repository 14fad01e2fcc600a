// Finds signals that a forked process will not take: the signals are pending, each thread of the process blocks these
// signals, and the fork did not copy the parent's thread that waited for them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "proc/descriptor_tables.hpp"
#include "proc/proc_fs.hpp"
#include "proc/thread_sample.hpp"
#include "watch/evidence.hpp"
#include "watch/tree.hpp"

namespace forksight::watch {

struct Unheard {
  proc::ProcessKey key;
  std::uint64_t signals = 0;                    // bit 0 is signal 1
  std::chrono::steady_clock::time_point since;  // the first look at which they were pending
  bool at_rest = false;                         // no thread of the process has run since then
  proc::Round round;
};

// Returns those signals of `lost` that are pending for the process and that each of its living threads blocks. Pure.
std::uint64_t find_unheard(const proc::Round& round, std::uint64_t lost);

class UnheardSignals {
 public:
  // Sets the signals that the lost threads of each forked process took, by the pid of the forked process. Other
  // processes are not examined.
  void set_lost(std::map<std::int32_t, std::uint64_t> lost) { lost_ = std::move(lost); }
  // Finds the unheard signals of the processes that set_lost() named. Leaves out a process that has called exec since
  // its fork, or that may have a signalfd.
  std::vector<Unheard> look(const Tree& tree, std::chrono::steady_clock::time_point now,
                            proc::DescriptorTables& tables);

 private:
  struct Seen {
    std::uint64_t signals = 0;
    std::chrono::steady_clock::time_point since;
    proc::Round first;
    bool at_rest = true;
  };

  std::map<std::int32_t, std::uint64_t> lost_;
  std::map<proc::ProcessKey, Seen> seen_;
};

}  // namespace forksight::watch
