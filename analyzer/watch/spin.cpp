#include "watch/spin.hpp"

#include <unistd.h>

#include "proc/proc_fs.hpp"

namespace forksight::watch {

bool is_busy(std::uint64_t cpu_ticks, std::chrono::steady_clock::duration elapsed, long ticks_per_second) {
  constexpr double kLeastShare = 0.05;
  const double seconds = std::chrono::duration<double>(elapsed).count();
  return cpu_ticks > 0 &&
         static_cast<double>(cpu_ticks) >= kLeastShare * seconds * static_cast<double>(ticks_per_second);
}

void SpinWatch::follow(const std::vector<OpenTouch>& touches) {
  std::map<OpenTouch, History> kept;
  for (const OpenTouch& touch : touches) {
    const auto known = histories_.find(touch);
    kept[touch] = known == histories_.end() ? History{} : known->second;
  }
  histories_ = std::move(kept);
}

void SpinWatch::look(Clock::time_point now) {
  for (auto& [touch, history] : histories_) {
    const proc::ReadText text = proc::read_file(proc::task_path(touch.pid, touch.tid, "stat"));
    const auto stat = text ? proc::parse_stat(text.text) : std::nullopt;
    if (!stat || stat->state != 'R') {
      history.runs = false;
      continue;
    }
    if (!history.runs) history = {true, now, stat->cpu_ticks, stat->cpu_ticks};
    history.ticks = stat->cpu_ticks;
  }
}

std::vector<Spin> SpinWatch::spinning(Clock::time_point now, Clock::duration age) const {
  static const long ticks_per_second = ::sysconf(_SC_CLK_TCK);
  std::vector<Spin> found;
  for (const auto& [touch, history] : histories_) {
    const Clock::duration elapsed = now - history.since;
    if (!history.runs || elapsed < age) continue;
    if (is_busy(history.ticks - history.ticks_at_start, elapsed, ticks_per_second))
      found.push_back({touch, history.since});
  }
  return found;
}

}  // namespace forksight::watch
