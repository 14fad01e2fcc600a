#include "session/outside.hpp"

#include <algorithm>
#include <utility>

#include "diagnose/diagnose.hpp"
#include "diagnose/words.hpp"
#include "files/budgets.hpp"
#include "proc/proc_fs.hpp"

namespace forksight {
namespace {

using Key = std::pair<std::int32_t, std::uint64_t>;  // pid, start

Key key_of(const model::Process& process) { return {process.pid, process.start_ticks}; }

bool is_same(const model::Process& one, const model::Process& other) {
  const bool is_here = one.host.empty() || other.host.empty() || one.host == other.host;
  return is_here && key_of(one) == key_of(other);
}

// True if the finding reports a hang whose cause is only possible or unknown.
bool is_guess(const Finding& finding) {
  const bool is_hang = finding.outcome == Outcome::kHang || finding.outcome == Outcome::kMayHang;
  return is_hang && (finding.cause == Certainty::kPossible || finding.cause == Certainty::kUnknown);
}

// Returns how much a finding explains. A greater number explains more.
//  - 4: the finding is no guess.
//  - 3: a guess that names the awaited object.
//  - 2: a guess that only names what the fork lost, or that names a semaphore. The semaphore may be a signal and not a
//    lock, and the name of a signal explains no more than what the fork lost.
//  - 1: a guess that the cause is a fork that bypassed the atfork handlers.
//  - 0: a guess that the cause is a deadlock.
int explanation_rank(const Finding& finding) {
  if (!is_guess(finding)) return 4;
  if (finding.rule == "deadlock") return 0;
  if (finding.rule == "atfork-bypassed") return 1;
  // With an address, this guess names a lock: the address was found in stacks. A trace does not contain these stacks.
  if (finding.rule == "lost-wakeup" && finding.culprit.address != 0) return 3;
  return finding.rule == "lost-wakeup" || finding.rule == "orphaned-semaphore" ? 2 : 3;
}

// True if a finding is about the process or names the process as a victim, and its explanation_rank() is at least
// `rank`.
bool is_explained(const model::Process& process, const model::Model& model, const std::vector<Finding>& findings,
                  int rank) {
  return std::ranges::any_of(findings, [&](const Finding& finding) {
    if (explanation_rank(finding) < rank) return false;
    const bool is_about = std::ranges::any_of(
        finding.processes, [&](model::ProcessId id) { return is_same(model.processes[id], process); });
    const auto is_it = [&](const Victim& victim) { return victim.pid == process.pid; };
    const std::string& host = model.processes[finding.process].host;
    const bool is_here = host.empty() || process.host.empty() || host == process.host;
    return is_about || (is_here && std::ranges::any_of(finding.victims, is_it));
  });
}

model::ProcessId find_or_add(model::Model& model, const model::Process& process) {
  const auto at =
      std::ranges::find_if(model.processes, [&](const model::Process& one) { return is_same(one, process); });
  if (at != model.processes.end()) return static_cast<model::ProcessId>(at - model.processes.begin());
  model.processes.push_back(process);
  model.processes.back().waits_for.reset();
  model.processes.back().is_asked_about = true;  // the user asked about the whole run
  return model.processes.size() - 1;
}

// True if some hang has no finding, or only a guess.
bool is_worth_a_look(const model::Model& model, const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings, is_guess) || !find_unexplained(model, findings).empty();
}

// A semaphore does not record who took it. So the look from outside takes any lost thread for the holder of a Python
// lock. But the shim has seen who takes semaphores, and which processes wait for a semaphore that a lost thread held.
// If it recorded no such wait, no lost thread held the semaphore. Perhaps the child destroyed the lock that a lost
// thread held, and made another one at the same address. Removes what the look concluded about such semaphores.
void remove_disproved(model::Model& model, model::ForkId id, const model::Model& traced) {
  const model::Fork& fork = model.forks[id];
  const auto is_recorded = [&](const model::Touch& seen, std::uint64_t address) {
    return std::ranges::any_of(traced.touches, [&](const model::Touch& touch) {
      if (!touch.held || !is_same(traced.processes[touch.process], model.processes[seen.process])) return false;
      const model::Held& held = traced.forks[touch.fork].held[*touch.held];
      return !held.by_forking_thread && traced.locks[held.lock].address == address;
    });
  };
  std::erase_if(model.touches, [&](const model::Touch& touch) {
    if (touch.fork != id || !touch.held || touch.kind != model::TouchKind::kLock) return false;
    const model::Lock& lock = model.locks[fork.held[*touch.held].lock];
    return lock.kind == model::LockKind::kSemaphore && words::is_python_semaphore(touch.stack) &&
           !is_recorded(touch, lock.address);
  });
}

// Returns a copy of `seen`. Adds to each fork what the traces contain about it: where fork() was called, and the Python
// lines at that moment. Removes what the traces disprove.
model::Model with_traced_forks(const model::Model& seen, const model::Model& traced) {
  model::Model model = seen;
  for (model::ForkId id = 0; id < model.forks.size(); ++id) {
    model::Fork& fork = model.forks[id];
    if (!fork.child) continue;
    const auto same = std::ranges::find_if(traced.forks, [&](const model::Fork& one) {
      return one.child && is_same(traced.processes[*one.child], model.processes[*fork.child]) &&
             is_same(traced.processes[one.process], model.processes[fork.process]);
    });
    if (same == traced.forks.end()) continue;
    const bool is_whole =
        !same->is_inferred && !traced.processes[same->process].has_gaps && !traced.processes[*same->child].has_gaps;
    if (is_whole) remove_disproved(model, id, traced);
    if (!fork.stack.known()) fork.stack = same->stack;
    if (same->python && *same->python < traced.python.size()) {
      fork.python = model.python.size();
      model.python.push_back(traced.python[*same->python]);
    }
  }
  return model;
}

// Removes those guesses that are about the processes of `kept` and that explain less than the finding of `kept`. If
// such a guess is also about other processes, removes nothing and returns false.
bool replace_weaker_findings(const KeptFinding& kept, const model::Model& model, std::vector<Finding>& findings) {
  const auto is_of_kept = [&](model::ProcessId id) {
    return std::ranges::any_of(kept.processes,
                               [&](const model::Process& one) { return is_same(model.processes[id], one); });
  };
  const auto is_about_kept = [&](const Finding& finding) {
    return explanation_rank(finding) < explanation_rank(kept.finding) &&
           std::ranges::any_of(finding.processes, is_of_kept);
  };
  const auto is_about_others = [&](const Finding& finding) {
    return is_about_kept(finding) && !std::ranges::all_of(finding.processes, is_of_kept);
  };
  if (std::ranges::any_of(findings, is_about_others)) return false;
  std::erase_if(findings, is_about_kept);
  return true;
}

}  // namespace

void OutsideFindings::keep(const model::Model& seen, const model::Model& model, const std::vector<Finding>& findings) {
  if (!is_worth_a_look(model, findings)) return;
  limits_.clear();
  Diagnosed diagnosed = diagnose_within(files::kLongestRulesOfRun, with_traced_forks(seen, model), limits_);
  for (Finding& finding : diagnosed.findings) {
    // `run` does not report a hang that is only possible and that only the look from outside shows. `forksight why`
    // reports such a hang.
    if (finding.harm == Certainty::kPossible) continue;
    const bool is_known = is_explained(seen.processes[finding.process], model, findings, explanation_rank(finding)) ||
                          std::ranges::any_of(kept_, [&](const KeptFinding& kept) {
                            return kept.finding.fingerprint == finding.fingerprint &&
                                   key_of(kept.processes.front()) == key_of(seen.processes[finding.process]);
                          });
    if (is_known) continue;
    KeptFinding kept;
    for (const model::ProcessId id : finding.processes) {
      model::Process process = seen.processes[id];
      process.python.reset();
      if (!model.processes.empty()) process.host = model.processes.front().host;
      kept.processes.push_back(std::move(process));
    }
    kept.finding = std::move(finding);
    kept_.push_back(std::move(kept));
  }
}

void OutsideFindings::forget(const proc::ProcessKey& key) {
  const auto is_it = [&](const model::Process& process) { return key_of(process) == Key{key.pid, key.start_ticks}; };
  was_written_ = was_written_ || !kept_.empty();
  std::erase_if(kept_, [&](const KeptFinding& kept) { return std::ranges::any_of(kept.processes, is_it); });
}

void OutsideFindings::add_to(model::Model& model, std::vector<Finding>& findings) const {
  for (const std::string& limit : limits_) {
    if (std::ranges::find(model.limits, limit) == model.limits.end()) model.limits.push_back(limit);
  }
  std::vector<const KeptFinding*> unexplained;
  for (const KeptFinding& kept : kept_) {
    if (!is_explained(kept.processes.front(), model, findings, explanation_rank(kept.finding)))
      unexplained.push_back(&kept);
  }
  for (const KeptFinding* const kept : unexplained) {
    if (!replace_weaker_findings(*kept, model, findings)) continue;
    Finding finding = kept->finding;
    finding.processes.clear();
    for (const model::Process& process : kept->processes) finding.processes.push_back(find_or_add(model, process));
    finding.process = finding.processes.front();
    const auto equal = std::ranges::find_if(findings, [&](const Finding& one) {
      return one.fingerprint == finding.fingerprint && one.outcome == finding.outcome && one.harm == finding.harm;
    });
    if (equal == findings.end()) {
      findings.push_back(std::move(finding));
      continue;
    }
    // Another process, for example another MPI rank, has the same finding.
    equal->count += finding.count;
    equal->processes.insert(equal->processes.end(), finding.processes.begin(), finding.processes.end());
    equal->victims.insert(equal->victims.end(), finding.victims.begin(), finding.victims.end());
    equal->more_victims += finding.more_victims;
  }
}

std::string OutsideFindings::write(const std::filesystem::path& folder, int fd) const {
  return kept_.empty() && !was_written_ ? std::string() : write_outside(folder, kept_, fd);
}

OutsideFindings OutsideFindings::read(const files::Reader& reader, const std::vector<std::filesystem::path>& folders,
                                      std::vector<std::string>& limits) {
  OutsideFindings outside;
  outside.kept_ = read_outside(reader, folders, limits);
  return outside;
}

}  // namespace forksight
