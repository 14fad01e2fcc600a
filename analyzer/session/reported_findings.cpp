#include "session/reported_findings.hpp"

#include <algorithm>

#include "diagnose/diagnose.hpp"
#include "proc/proc_fs.hpp"

namespace forksight {
namespace {

bool is_proven(const watch::Verdict& verdict) {
  return verdict.liveness != model::Liveness::kSpinning && verdict.liveness != model::Liveness::kStalled &&
         verdict.liveness != model::Liveness::kAwake;
}

}  // namespace

void ReportedFindings::note(const Verdicts& verdicts, const model::Model& model, const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    Reported& said = reported_findings_[finding.fingerprint];
    said.harm = std::max(said.harm, finding.harm);
    bool has_stuck = false;
    for (const model::ProcessId id : finding.processes) {
      const watch::Verdict* const verdict = find_verdict(verdicts, model.processes[id]);
      if (verdict == nullptr || !is_hang(finding)) continue;
      has_stuck = true;
      said.stuck.insert(verdict->key);
      said.is_proven = said.is_proven || (finding.harm == Certainty::kProven && is_proven(*verdict));
    }
    said.is_proven = said.is_proven || !has_stuck;
  }
}

std::vector<std::string> ReportedFindings::withdraw(const proc::ProcessKey& key) {
  std::vector<std::string> gone;
  for (auto entry = reported_findings_.begin(); entry != reported_findings_.end();) {
    const bool is_last = entry->second.stuck.erase(key) > 0 && entry->second.stuck.empty();
    if (is_last) gone.push_back(entry->first);
    entry = is_last ? reported_findings_.erase(entry) : std::next(entry);
  }
  return gone;
}

std::map<std::int32_t, std::vector<std::string>> ReportedFindings::withdraw_unproven(const std::vector<Finding>& last) {
  std::map<std::int32_t, std::vector<std::string>> gone;  // by pid
  for (auto entry = reported_findings_.begin(); entry != reported_findings_.end();) {
    const bool is_found = std::ranges::find(last, entry->first, &Finding::fingerprint) != last.end();
    const bool stays = is_found || entry->second.is_proven || entry->second.stuck.empty();
    if (!stays) gone[entry->second.stuck.begin()->pid].push_back(entry->first);
    entry = stays ? std::next(entry) : reported_findings_.erase(entry);
  }
  return gone;
}

bool ReportedFindings::has_at_least(Certainty least, const std::vector<Finding>& last) const {
  const bool is_found = std::ranges::any_of(last, [&](const Finding& finding) { return finding.harm >= least; });
  return is_found ||
         std::ranges::any_of(reported_findings_, [&](const auto& entry) { return entry.second.harm >= least; });
}

std::set<proc::ProcessKey> find_named(const Verdicts& verdicts, const model::Model& model,
                                      const std::vector<Finding>& findings) {
  std::set<model::ProcessId> named;
  std::set<std::int32_t> victims;
  for (const Finding& finding : findings) {
    if (!is_hang(finding)) continue;
    named.insert(finding.processes.begin(), finding.processes.end());
    for (const Victim& victim : finding.victims) victims.insert(victim.pid);
  }
  for (const model::ProcessId id : find_unexplained_processes(model, findings)) named.insert(id);
  std::set<proc::ProcessKey> keys;
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    const model::Process& process = model.processes[id];
    if (!named.contains(id) && !victims.contains(process.pid)) continue;
    if (const watch::Verdict* const verdict = find_verdict(verdicts, process)) keys.insert(verdict->key);
  }
  return keys;
}

}  // namespace forksight
