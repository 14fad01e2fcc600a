// Shared by the rules that guess. Such a rule names a suspect, and only for a process that no better finding explains.
#pragma once

#include <algorithm>
#include <vector>

#include "diagnose/evidence.hpp"

namespace forksight::suspects {

// True if a finding is about this process, or about a child that it forked. That finding tells what the threads of this
// process wait for.
inline bool has_finding(const Evidence& evidence, model::ProcessId id, const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings, [&](const Finding& finding) {
    const bool is_parent = finding.fork && finding.fork->pid == evidence.process(id).pid;
    return is_parent || std::ranges::find(finding.processes, id) != finding.processes.end();
  });
}

}  // namespace forksight::suspects
