#include "session/kill.hpp"

#include <algorithm>

namespace forksight {
namespace {

// True if the process is dead and its waits have no way out. Ctrl-C in a Python script does not count as a way out,
// because every Python script has a handler for Ctrl-C.
bool can_never_go_on(const watch::Verdict& verdict) {
  return verdict.ways_out.empty() &&
         (verdict.liveness == model::Liveness::kDead || verdict.liveness == model::Liveness::kDeadButForSignal);
}

}  // namespace

bool has_hang_to_end(const Verdicts& verdicts, const model::Model& model, const std::vector<Finding>& findings,
                     Certainty least) {
  return std::ranges::any_of(findings, [&](const Finding& finding) {
    if (!is_hang(finding) || finding.harm < least) return false;
    return std::ranges::any_of(finding.processes, [&](model::ProcessId id) {
      const watch::Verdict* const verdict = find_verdict(verdicts, model.processes[id]);
      if (verdict == nullptr) return false;
      const bool is_certain = finding.harm == Certainty::kProven && finding.outcome == Outcome::kHang;
      return is_certain || verdict->liveness != model::Liveness::kAwake;
    });
  });
}

std::vector<proc::ProcessKey> find_targets(std::vector<proc::ProcessKey> tree, const Verdicts& verdicts) {
  std::vector<proc::ProcessKey> targets = std::move(tree);
  for (const auto& [key, verdict] : verdicts) {
    if (can_never_go_on(verdict) && std::ranges::find(targets, key) == targets.end()) targets.push_back(key);
  }
  return targets;
}

std::vector<proc::ProcessKey> find_proven_dead(const Verdicts& verdicts, const model::Model& model,
                                               const std::vector<Finding>& findings) {
  std::vector<proc::ProcessKey> dead;
  for (const Finding& finding : findings) {
    if (finding.outcome != Outcome::kHang || finding.harm != Certainty::kProven) continue;
    for (const model::ProcessId id : finding.processes) {
      const watch::Verdict* const verdict = find_verdict(verdicts, model.processes[id]);
      if (verdict != nullptr && can_never_go_on(*verdict) && std::ranges::find(dead, verdict->key) == dead.end()) {
        dead.push_back(verdict->key);
      }
    }
  }
  return dead;
}

}  // namespace forksight
