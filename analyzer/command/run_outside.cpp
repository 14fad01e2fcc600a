#include "command/run_outside.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "diagnose/diagnose.hpp"
#include "inspect/live_tree.hpp"

namespace forksight {
namespace {

using Key = std::pair<std::int32_t, std::uint64_t>;  // pid, start

Key key_of(const model::Process& process) { return {process.pid, process.start_ticks}; }

std::set<std::int32_t> explained_pids(const model::Model& model, const std::vector<Finding>& findings) {
  std::set<std::int32_t> pids;
  for (const Finding& finding : findings) {
    for (const model::ProcessId id : finding.processes) pids.insert(model.processes[id].pid);
    for (const Victim& victim : finding.victims) pids.insert(victim.pid);
  }
  return pids;
}

model::ProcessId find_or_add(model::Model& model, const model::Process& process) {
  const auto at = std::ranges::find(model.processes, key_of(process), key_of);
  if (at != model.processes.end()) return static_cast<model::ProcessId>(at - model.processes.begin());
  model.processes.push_back(process);
  model.processes.back().waits_for.reset();
  return model.processes.size() - 1;
}

}  // namespace

void OutsideFindings::look(std::int32_t pid, const model::Model& model, const std::vector<Finding>& findings) {
  if (find_unexplained(model, findings).empty()) return;
  const auto tree = inspect::look_at_tree(pid);
  if (!tree) return;
  const model::Model seen = inspect::build_model(tree->subjects);
  const std::set<std::int32_t> explained = explained_pids(model, findings);
  for (Finding& finding : diagnose(seen)) {
    const bool is_known =
        explained.contains(seen.processes[finding.process].pid) || std::ranges::any_of(kept_, [&](const Kept& kept) {
          return kept.finding.fingerprint == finding.fingerprint &&
                 key_of(kept.processes.front()) == key_of(seen.processes[finding.process]);
        });
    if (is_known) continue;
    Kept kept;
    for (const model::ProcessId id : finding.processes) {
      model::Process process = seen.processes[id];
      process.python.reset();
      kept.processes.push_back(std::move(process));
    }
    kept.finding = std::move(finding);
    kept_.push_back(std::move(kept));
  }
}

void OutsideFindings::add_to(model::Model& model, std::vector<Finding>& findings) const {
  const std::set<std::int32_t> explained = explained_pids(model, findings);
  for (const Kept& kept : kept_) {
    if (explained.contains(kept.processes.front().pid)) continue;
    Finding finding = kept.finding;
    finding.processes.clear();
    for (const model::Process& process : kept.processes) finding.processes.push_back(find_or_add(model, process));
    finding.process = finding.processes.front();
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight
