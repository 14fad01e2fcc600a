#include "diagnose/diagnose.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "diagnose/advice.hpp"
#include "diagnose/evidence.hpp"
#include "diagnose/fingerprint.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/wait_cycles.hpp"
#include "diagnose/words.hpp"
#include "files/budgets.hpp"

namespace forksight {

namespace {

int severity(Outcome outcome) {
  switch (outcome) {
    case Outcome::kHang: return 0;
    case Outcome::kMayHang: return 1;
    case Outcome::kCorruption: return 2;
    case Outcome::kError: return 3;
    case Outcome::kCured: return 4;
  }
  return 5;
}

// Findings with a lower place come first in the report.
std::tuple<int, int, int> place_of(const Finding& finding) {
  return {-static_cast<int>(finding.harm), severity(finding.outcome), -static_cast<int>(finding.cause)};
}

std::vector<Finding> merge_equal(std::vector<Finding> all) {
  std::vector<Finding> merged;
  std::map<std::tuple<std::string, Outcome, Certainty, Certainty>, std::size_t> known;
  for (Finding& finding : all) {
    const auto [at, is_new] =
        known.try_emplace({finding.fingerprint, finding.outcome, finding.harm, finding.cause}, merged.size());
    if (is_new) {
      merged.push_back(std::move(finding));
      continue;
    }
    merge(merged[at->second], finding);
  }
  // If one process had several of the merged findings, it is listed only once.
  for (Finding& finding : merged) {
    std::unordered_set<model::ProcessId> seen;
    std::erase_if(finding.processes, [&](model::ProcessId id) { return !seen.insert(id).second; });
  }
  return merged;
}

// Changes a proven hang to a likely one if one of its processes has `may_be_timed_out`. Such a process may receive a
// signal although no other process sends one. The signal may end the process. Or it may run a handler that jumps out of
// the wait for a lock, unlocks the lock, or cancels the thread that it interrupted. So this applies to every rule and
// to every kind of wait.
void lower_certainty_for_timers(const model::Model& model, std::vector<Finding>& findings) {
  for (Finding& finding : findings) {
    const auto has_timer = [&](model::ProcessId id) { return model.processes[id].may_be_timed_out; };
    const bool is_proven = is_hang(finding) && finding.harm == Certainty::kProven;
    if (!is_proven || std::ranges::none_of(finding.processes, has_timer)) continue;
    finding.harm = Certainty::kLikely;
    add_sentence(finding,
                 "It is not proven that this never ends: a signal may come from a timer, from the end of a child or "
                 "from another thread, and end the process or run a handler that jumps out of the wait.");
  }
}

// Returns for each process the process at the end of its chain of waits; nullopt if the chain is a ring. Chains may be
// very long, and share their ends, so each process is visited once.
std::vector<std::optional<model::ProcessId>> find_roots(const model::Model& model) {
  std::vector<std::optional<model::ProcessId>> roots(model.processes.size());
  std::vector<bool> is_visited(model.processes.size());
  std::vector<model::ProcessId> chain;
  for (model::ProcessId first = 0; first < model.processes.size(); ++first) {
    chain.clear();
    model::ProcessId id = first;
    while (!is_visited[id]) {
      is_visited[id] = true;
      chain.push_back(id);
      const model::Process& process = model.processes[id];
      if (process.liveness == model::Liveness::kVictim && process.waits_for) {
        id = *process.waits_for;
      } else {
        roots[id] = id;
      }
    }
    // If the chain has met itself, `id` has no root yet. Then no process of the chain has a root.
    for (const model::ProcessId one : chain) roots[one] = roots[id];
  }
  return roots;
}

// Adds victims that attach_victims() does not find. Such a victim is proven dead, and no finding is about it. It waits
// for a process of a finding, or for another victim: either for the end of that process, or for a lock of
// multiprocessing that the process holds. attach_victims() finds only processes with the liveness "victim". A process
// has the liveness "dead" instead if it waits for another process that waits for something that both share. An example
// is a semaphore that both processes have mapped.
void attach_bound_processes(const model::Model& model, std::vector<Finding>& findings) {
  std::map<std::pair<std::string, std::int32_t>, Finding*> by_process;
  for (Finding& finding : findings) {
    if (finding.outcome == Outcome::kCured) continue;
    for (const model::ProcessId id : finding.processes)
      by_process.try_emplace({model.processes[id].host, model.processes[id].pid}, &finding);
    for (const Victim& victim : finding.victims)
      by_process.try_emplace({model.processes[finding.process].host, victim.pid}, &finding);
  }
  const auto find_awaited = [&](const model::Process& process) -> std::pair<Finding*, std::string> {
    for (const model::Wait& wait : process.waits) {
      for (const model::Waker& waker : wait.wakers) {
        if (waker.via != "wait4" && waker.via != model::kViaSemaphoreLock) continue;
        const auto found = by_process.find({process.host, waker.pid});
        if (found != by_process.end()) return {found->second, waker.via};
      }
    }
    return {};
  };
  // The processes that wait for a process, by its host and pid.
  std::map<std::pair<std::string, std::int32_t>, std::vector<model::ProcessId>> waiters;
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    const model::Process& process = model.processes[id];
    if (!is_proven_dead(process)) continue;
    for (const model::Wait& wait : process.waits) {
      for (const model::Waker& waker : wait.wakers) {
        if (waker.via != "wait4" && waker.via != model::kViaSemaphoreLock) continue;
        std::vector<model::ProcessId>& of_waker = waiters[{process.host, waker.pid}];
        if (of_waker.empty() || of_waker.back() != id) of_waker.push_back(id);
      }
    }
  }
  // The code visits processes in ascending order, in several rounds. It visits a process only if the process waits for
  // a process of `by_process`. So a long chain of processes takes linear time.
  std::set<std::pair<std::size_t, model::ProcessId>> open;  // round and process
  for (const auto& [name, finding] : by_process) {
    if (const auto found = waiters.find(name); found != waiters.end()) {
      for (const model::ProcessId id : found->second) open.emplace(0, id);
    }
  }
  while (!open.empty()) {
    const auto [round, id] = open.extract(open.begin()).value();
    const model::Process& process = model.processes[id];
    const std::pair name(process.host, process.pid);
    if (by_process.contains(name)) continue;
    const auto [finding, via] = find_awaited(process);
    if (finding == nullptr) continue;
    finding->victims.push_back({process.pid, via});
    by_process.emplace(name, finding);
    if (const auto found = waiters.find(name); found != waiters.end()) {
      for (const model::ProcessId waiter : found->second) open.emplace(waiter > id ? round : round + 1, waiter);
    }
  }
}

// Returns for each process the finding that comes first in the report; null if no finding is about the process.
std::vector<const Finding*> find_first_findings(const model::Model& model, const std::vector<Finding>& findings) {
  std::vector<const Finding*> first(model.processes.size());
  for (const Finding& finding : findings) {
    if (finding.outcome == Outcome::kCured) continue;
    for (const model::ProcessId id : finding.processes) {
      if (first[id] == nullptr || place_of(finding) < place_of(*first[id])) first[id] = &finding;
    }
  }
  return first;
}

// Adds the victims of each process to the findings about it. The first finding about a process lists all of its
// victims. A process may have thousands of findings and of victims, so the other findings list only some of them, until
// `bytes` are used up.
void attach_victims(const model::Model& model, std::size_t bytes, std::vector<Finding>& findings) {
  std::map<model::ProcessId, std::vector<model::ProcessId>> by_root;
  const std::vector<std::optional<model::ProcessId>> roots = find_roots(model);
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    if (model.processes[id].liveness != model::Liveness::kVictim) continue;
    const std::optional<model::ProcessId>& root = roots[id];
    if (root && *root != id) by_root[*root].push_back(id);
  }
  if (by_root.empty()) return;
  const std::vector<const Finding*> first = find_first_findings(model, findings);
  for (Finding& finding : findings) {
    if (finding.outcome == Outcome::kCured) continue;
    std::size_t repeated = 0;
    for (const model::ProcessId about : finding.processes) {
      const auto victims = by_root.find(about);
      if (victims == by_root.end()) continue;
      std::size_t listed = 0;
      for (const model::ProcessId id : victims->second) {
        const model::Process& victim = model.processes[id];
        if (first[about] != &finding) {
          const std::size_t size = sizeof(Victim) + victim.waits_via.size();
          if (repeated == files::kMaxListedVictims || size > bytes) break;
          ++repeated;
          bytes -= size;
        }
        finding.victims.push_back({victim.pid, victim.waits_via});
        ++listed;
      }
      finding.more_victims += victims->second.size() - listed;
    }
  }
}

// Appends one sentence for each search that has ended early, because it took too many steps.
void append_search_limits(const Evidence& evidence, std::vector<std::string>& limits) {
  if (!evidence.has_all_cycles()) {
    limits.emplace_back(
        "the waits are too many to search completely, so rings of threads that wait for each other "
        "may be missing");
  }
  if (!evidence.lock_rings().is_complete) {
    limits.push_back(
        fmt::format("{} orders of locks are too many to search completely, so some rings of locks may be missing; run "
                    "a smaller part of the program under --lock-order",
                    evidence.model().lock_orders.size()));
  }
}

}  // namespace

std::vector<Finding> diagnose(const model::Model& model) {
  std::vector<std::string> limits;
  return diagnose(model, limits);
}

std::vector<Finding> diagnose(const model::Model& model, std::vector<std::string>& limits) {
  return diagnose_within(files::kLongestRules, model, limits).findings;
}

Diagnosed diagnose_within(std::chrono::nanoseconds longest, const model::Model& model,
                          std::vector<std::string>& limits) {
  RuleClock clock(longest);
  clock.begin_rule();
  const Evidence evidence(model, clock);
  FindingList list(model, &clock);
  std::vector<std::string_view> too_long;
  for (const Rule& rule : all_rules()) {
    if (rule.evaluate == nullptr) continue;
    if (!clock.begin_rule()) {
      too_long.emplace_back(rule.slug);
      continue;
    }
    list.begin_rule();
    try {
      rule.evaluate(evidence, list);
    } catch (const RuleTookTooLong&) {
      too_long.emplace_back(rule.slug);
    } catch (const TooManyFindings&) {
      limits.push_back(
          fmt::format("the findings of the rule {} would take too much memory; some of them are missing, so other "
                      "rules may have reported the same processes",
                      rule.slug));
    }
  }
  if (!too_long.empty()) {
    limits.push_back(
        fmt::format("the rules would take too much processor time, so these rules have ended early or were left out, "
                    "and hangs may be missing: {}; other rules may have reported the same processes",
                    fmt::join(too_long, ", ")));
  }
  append_search_limits(evidence, limits);
  const std::size_t bytes_left = list.bytes_left();
  std::vector<Finding> findings = list.take_merged();
  // A hang that may be intended is no finding. `forksight why` shows what the process waits for, and what could end the
  // wait.
  std::erase_if(findings, [](const Finding& finding) { return finding.may_be_intended; });
  lower_certainty_for_timers(model, findings);
  for (Finding& finding : findings) finding.fingerprint = fingerprint(model, finding);
  findings = merge_equal(std::move(findings));
  attach_victims(model, bytes_left, findings);
  attach_bound_processes(model, findings);
  const Advisor advisor(model);
  for (Finding& finding : findings) {
    std::stable_partition(finding.fixes.begin(), finding.fixes.end(), [](const Fix& fix) { return fix.verified; });
    advisor.add_advice(finding);
  }
  std::ranges::stable_sort(findings, {}, place_of);
  return {std::move(findings), too_long.empty()};
}

bool may_find(const model::Model& model) {
  std::vector<std::string> limits;
  const Diagnosed diagnosed = diagnose_within(files::kLongestRulesOfRun, model, limits);
  return !diagnosed.findings.empty() || !diagnosed.has_all_rules;
}

// Some rules need the names of functions to recognise the owner of a lock or pool. If names are missing, another rule
// reports the same process in most cases. Then diagnose() finds something in `nameless`, too. In the other cases no
// rule reports the process without names. An example is a child that was forked in a signal handler. But this function
// recognises these cases, because the process is stuck or waits.
bool may_find_with_names(const model::Model& nameless) {
  const bool has_stuck = std::ranges::any_of(nameless.processes, [](const model::Process& process) {
    if (!process.waits.empty()) return true;
    return process.liveness != model::Liveness::kUnknown && process.liveness != model::Liveness::kAwake &&
           process.liveness != model::Liveness::kEnded;
  });
  // With names, a semaphore may turn out to be a lock of Python. forksight can say more about such a lock.
  const bool has_semaphore = std::ranges::any_of(nameless.touches, [&](const model::Touch& touch) {
    return touch.held &&
           nameless.locks[nameless.forks[touch.fork].held[*touch.held].lock].kind == model::LockKind::kSemaphore;
  });
  return has_stuck || has_semaphore || may_find(nameless);
}

std::vector<model::ProcessId> find_unexplained_processes(const model::Model& model,
                                                         const std::vector<Finding>& findings) {
  std::unordered_set<model::ProcessId> explained;
  std::unordered_set<std::int32_t> victims;
  for (const Finding& finding : findings) {
    if (finding.outcome == Outcome::kCured) continue;
    explained.insert(finding.processes.begin(), finding.processes.end());
    for (const Victim& victim : finding.victims) victims.insert(victim.pid);
  }
  std::vector<model::ProcessId> unexplained;
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    const model::Process& process = model.processes[id];
    if (!is_proven_dead(process) || explained.contains(id) || victims.contains(process.pid)) continue;
    // If something may still end the wait of the process, it may be a daemon that waits for a signal.
    if (!has_way_out(process)) unexplained.push_back(id);
  }
  return unexplained;
}

std::vector<std::string> find_unexplained(const model::Model& model, const std::vector<Finding>& findings) {
  std::vector<std::string> sentences;
  for (const model::ProcessId id : find_unexplained_processes(model, findings)) {
    const model::Process& process = model.processes[id];
    const std::string name = process.exe.empty() ? std::string() : fmt::format(" ({})", words::base_name(process.exe));
    const std::string since =
        process.stuck_for_ms > 0 ? fmt::format(" for {}", words::duration(process.stuck_for_ms)) : std::string();
    const char* const proof =
        process.liveness == model::Liveness::kDead ? "no task can wake it" : "only a signal handler could wake it";
    const std::string where = process.is_core ? std::string("CORE") : fmt::format("-p {}", process.pid);
    // `run` reports no guesses, but `forksight why` does. So the sentence names that command.
    const bool can_be_asked = !model.command.empty() && process.liveness == model::Liveness::kDeadButForSignal;
    const std::string next = can_be_asked ? fmt::format("ask: forksight why {}", process.pid)
                                          : fmt::format("see where: gdb {} -batch -ex 'thread apply all bt'", where);
    sentences.push_back(fmt::format("process {}{} has been stuck{}, {}, and no rule explains why; {}", process.pid,
                                    name, since, proof, next));
  }
  return sentences;
}

}  // namespace forksight
