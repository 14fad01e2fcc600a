#include "session/rest.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "files/budgets.hpp"
#include "guard/read_model.hpp"
#include "proc/proc_fs.hpp"
#include "proc/thread_sample.hpp"
#include "watch/enders.hpp"

namespace forksight {
namespace {

constexpr std::chrono::seconds kCheckEvery{1};
constexpr double kLeastShare = 0.05;      // processes that together use a smaller share of one processor are at rest
constexpr int kCostShare = 200;           // at most 1/kCostShare of the time is spent on looks
constexpr std::size_t kMostThreads = 64;  // the most threads to examine in each process

std::map<std::int32_t, std::uint64_t> read_ticks(const watch::Tree& tree) {
  std::map<std::int32_t, std::uint64_t> ticks;
  for (const auto& [pid, member] : tree.living()) {
    if (member.has_ended) continue;
    const auto stat = proc::read_stat(pid);
    if (stat && stat->start_ticks == member.key.start_ticks) ticks[pid] = stat->cpu_ticks;
  }
  return ticks;
}

bool has_worked(const std::map<std::int32_t, std::uint64_t>& before, const std::map<std::int32_t, std::uint64_t>& now,
                std::chrono::duration<double> time) {
  const auto is_same = [](const auto& one, const auto& other) { return one.first == other.first; };
  if (!std::ranges::equal(before, now, is_same)) return true;
  std::uint64_t used = 0;
  for (const auto& [pid, ticks] : now) used += ticks - std::min(ticks, before.at(pid));
  const double ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return static_cast<double>(used) > time.count() * ticks_per_second * kLeastShare;
}

model::Process describe(const watch::Member& member) {
  model::Process process;
  process.pid = member.key.pid;
  process.ppid = member.ppid;
  process.start_ticks = member.key.start_ticks;
  process.exe = member.exe;
  process.cmdline = member.cmdline;
  process.liveness = model::Liveness::kAwake;
  return process;
}

model::Model look_at_waits(const files::Reader& reader, const watch::Tree& tree) {
  model::Model model;
  std::vector<watch::Waiter> waiters;
  std::map<std::int32_t, model::ProcessId> ids;
  for (const auto& [pid, member] : tree.living()) {
    ids[pid] = model.processes.size();
    model.processes.push_back(describe(member));
    if (member.has_ended) continue;
    bool refused = false;
    const auto round = proc::sample_round(pid, refused);
    if (!round) continue;
    for (std::size_t at = 0; at < round->threads.size() && at < kMostThreads; ++at) {
      if (!round->threads[at].ended()) waiters.push_back({pid, round->threads[at], {}});
    }
  }
  proc::DescriptorTables tables;
  watch::find_waits(reader, waiters, tree, tables);
  for (watch::Waiter& waiter : waiters) model.processes[ids.at(waiter.pid)].waits.push_back(std::move(waiter.wait));
  return model;
}

}  // namespace

void RunRest::follow(const watch::Supervisor& supervisor, watch::Clock::time_point now) {
  if (now < next_check_) return;
  next_check_ = now + kCheckEvery;
  Ticks ticks = read_ticks(supervisor.tree());
  is_at_rest_ = !ticks_.empty() && !has_worked(ticks_, ticks, now - since_);
  ticks_ = std::move(ticks);
  since_ = now;
  if (!is_at_rest_) {
    waits_ = {};
    looked_at_.clear();
    return;
  }
  if (ticks_ == looked_at_ || now < next_look_) return;
  const auto look = [&](const files::Reader& reader) -> Result<model::Model> {
    return look_at_waits(reader, supervisor.tree());
  };
  guard::ModelRead read = guard::read_model(look, {.limit = files::kLongestIdleReading, .needs_ancestor = true});
  waits_ = read.model ? std::move(read.model).value() : model::Model{};
  looked_at_ = ticks_;
  next_look_ = now + (watch::Clock::now() - now) * kCostShare;
}

std::vector<model::ProcessId> find_waiting_processes(const model::Model& seen, const std::set<proc::ProcessKey>& told) {
  std::vector<model::ProcessId> resting;
  const auto is_running = [](const model::Wait& wait) { return wait.kind == model::WaitKind::kRunning; };
  for (model::ProcessId id = 0; id < seen.processes.size(); ++id) {
    const model::Process& process = seen.processes[id];
    const bool waits = !process.waits.empty() && !std::ranges::any_of(process.waits, is_running);
    if (waits && !told.contains({process.pid, process.start_ticks})) resting.push_back(id);
  }
  return resting;
}

}  // namespace forksight
