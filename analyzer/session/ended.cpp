#include "session/ended.hpp"

#include <algorithm>
#include <chrono>

#include "proc/proc_fs.hpp"

namespace forksight {

void RunEnded::follow(const model::Model& model) {
  for (const model::CudaIpcCall& call : model.cuda_ipc) {
    const model::Process& process = model.processes[call.process];
    if (process.pid <= 0 || living_.contains(process.pid)) continue;
    const bool is_known = std::ranges::any_of(ends_, [&](const collect::LoggedEnd& end) {
      return end.pid == process.pid && end.start_ticks == process.start_ticks;
    });
    if (is_known) continue;
    // The trace of a forked child does not contain the start time of the child, so the start time is read from /proc.
    const auto stat = process.start_ticks == 0 ? proc::read_stat(process.pid) : std::nullopt;
    living_[process.pid] = stat ? stat->start_ticks : process.start_ticks;
  }
}

void RunEnded::look() {
  for (auto entry = living_.begin(); entry != living_.end();) {
    const auto stat = proc::read_stat(entry->first);
    const bool lives = stat && stat->start_ticks == entry->second && stat->state != 'Z' && stat->state != 'X';
    if (lives) {
      ++entry;
      continue;
    }
    // The clock is read after /proc. So the process ended before this time.
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const auto now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    ends_.push_back({entry->first, entry->second, static_cast<std::uint64_t>(now_ns)});
    entry = living_.erase(entry);
  }
}

}  // namespace forksight
