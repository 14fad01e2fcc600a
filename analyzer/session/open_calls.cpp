#include "session/open_calls.hpp"

#include <chrono>

namespace forksight {

namespace {

std::chrono::steady_clock::time_point time_of(std::uint64_t monotonic_ns) {
  return std::chrono::steady_clock::time_point{std::chrono::nanoseconds(monotonic_ns)};
}

}  // namespace

std::vector<watch::StalledCall> find_open_handlers(const model::Model& model) {
  std::vector<watch::StalledCall> calls;
  for (const model::HandlerRun& run : model.handler_runs) {
    if (run.process < model.processes.size())
      calls.push_back({model.processes[run.process].pid, run.tid, time_of(run.since_ns)});
  }
  return calls;
}

std::vector<watch::StalledCall> find_timer_waits(const model::Model& model) {
  std::vector<watch::StalledCall> calls;
  for (const model::Touch& touch : model.touches) {
    const bool is_open = touch.kind == model::TouchKind::kTimerWait && !touch.returned;
    if (!is_open || touch.process >= model.processes.size()) continue;
    const model::Process& process = model.processes[touch.process];
    if (!process.has_execed) calls.push_back({process.pid, touch.tid, time_of(touch.time_ns)});
  }
  return calls;
}

}  // namespace forksight
