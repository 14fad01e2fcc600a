// A forked child that lost threads, sleeps for good by the futex proof, and has touched nothing that explains it: what
// it waits for was to come from a thread that it does not have. Which lock, condition or future that is, is not known.
#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>

#include "diagnose/evidence.hpp"
#include "diagnose/openmp.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

constexpr std::size_t kMostNamed = 4;

std::string name_lost(const model::Model& model, const model::Fork& fork) {
  std::string names;
  for (std::size_t i = 0; i < fork.lost_threads.size() && i < kMostNamed; ++i) {
    const model::Thread& thread = model.threads[fork.lost_threads[i]];
    names += (names.empty() ? "" : ", ") + words::thread(thread);
    const std::string created = words::at(" created at ", thread.created_at);
    names += created.empty() && !thread.start_routine.empty() ? fmt::format(" started with {}", thread.start_routine)
                                                              : created;
  }
  const std::size_t more =
      fork.lost_threads.size() - std::min(fork.lost_threads.size(), kMostNamed) + fork.unknown_threads;
  if (more > 0) names += fmt::format("{}{} more", names.empty() ? "" : " and ", more);
  return names;
}

Finding describe(const Evidence& evidence, const model::Fork& fork) {
  const model::Model& model = evidence.model();
  const model::Process& child = evidence.process(*fork.child);
  const std::size_t lost = fork.lost_threads.size() + fork.unknown_threads;
  Finding finding = evidence.begin_finding("lost-wakeup", fork);
  // A handler that posts a semaphore is a legal way to be woken: many daemons end so.
  const bool is_certain = is_beyond_signals(child);
  finding.certainty = is_certain ? Certainty::kCertain : Certainty::kLikely;
  finding.outcome = is_certain ? Outcome::kHang : Outcome::kMayHang;
  finding.culprit.kind = CulpritKind::kThread;
  finding.culprit.name = words::count(lost, "lost thread", "lost threads");
  if (!fork.lost_threads.empty()) {
    const model::Thread& first = model.threads[fork.lost_threads.front()];
    finding.culprit.holder = evidence.holder(first);
    finding.culprit.library = first.start_library;
    // std::thread starts everything inside of libstdc++: whose thread it is, its creator tells.
    if (const model::Frame* const creator = words::find_user_frame(first.created_at))
      finding.culprit.library = creator->module;
    finding.culprit.stack = first.created_at;
  }
  finding.summary =
      fmt::format("{} hangs in a futex that {}: {} of its parent {} not copied by fork(){}", evidence.name(*fork.child),
                  is_certain ? "nobody is left to wake" : "no task can wake, only a signal handler",
                  words::count(lost, "thread", "threads"), lost == 1 ? "was" : "were", words::at(" at ", fork.stack));
  add_sentence(finding, describe_liveness(child));
  add_sentence(finding, fmt::format("It was forked{} from process {}, which had {} more: {}.",
                                    words::at(" at ", fork.stack), evidence.process(fork.process).pid,
                                    words::count(lost, "thread", "threads"), name_lost(model, fork)));
  add_sentence(finding, "The child has none of these; what it waits for was to come from one of them.");
  add_sentence(finding,
               "Which lock, condition or future it is, is not known: forksight saw no lock operation of the child on a "
               "lock held at "
               "the fork. It may be a condition variable, a future, or a lock inside of libc or of another language.");
  if (!has_ended(child)) {
    finding.fixes.push_back(
        {fmt::format("See where it waits: gdb -p {} -batch -ex 'thread apply all bt'.", child.pid)});
  }
  if (words::is_python(child)) {
    finding.fixes.push_back(
        {"In Python, start workers with multiprocessing.set_start_method(\"forkserver\") or \"spawn\"."});
  } else {
    finding.fixes.push_back({"Exec right after fork(), or use posix_spawn()."});
  }
  finding.fixes.push_back(
      {"Fork before these threads are started, or start them again in the child (pthread_atfork() child handler)."});
  return finding;
}

}  // namespace

void lost_wakeup(const Evidence& evidence, std::vector<Finding>& findings) {
  const model::Model& model = evidence.model();
  std::unordered_set<model::ProcessId> explained;
  for (const model::Touch& touch : model.touches) {
    if (!touch.returned && !touch.cured) explained.insert(touch.process);
  }
  for (const model::Fork& fork : model.forks) {
    if (!fork.child || explained.contains(*fork.child) || fork.lost_threads.size() + fork.unknown_threads == 0)
      continue;
    const model::Process& child = evidence.process(*fork.child);
    const auto in_region = [&](model::PoolId id) { return openmp::is_team_in_region(model.pools[id]); };
    if (!is_proven_dead(child) || std::ranges::any_of(fork.pools, in_region)) continue;  // fork-inside-parallel-region
    const bool in_futex =
        std::ranges::any_of(child.waits, [](const auto& wait) { return wait.kind == model::WaitKind::kFutex; });
    if (in_futex) findings.push_back(describe(evidence, fork));
  }
}

}  // namespace forksight::rules
