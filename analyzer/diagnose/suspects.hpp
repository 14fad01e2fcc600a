// Shared by rules that can only guess. Such a rule names a suspect, but only for a process that no better finding
// explains.
#pragma once

#include <algorithm>
#include <vector>

#include "diagnose/evidence.hpp"

namespace forksight::suspects {

// True if a finding is about this process, or about a child that this process forked. That finding then explains what
// the threads of this process wait for.
inline bool has_finding(const Evidence& evidence, model::ProcessId id, const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings, [&](const Finding& finding) {
    const bool is_parent = finding.fork && finding.fork->pid == evidence.process(id).pid;
    return is_parent || std::ranges::find(finding.processes, id) != finding.processes.end();
  });
}

}  // namespace forksight::suspects
