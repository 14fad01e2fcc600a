// For rules that guess: they name a suspect, and only for a process that no better finding explains.
#pragma once

#include <algorithm>
#include <vector>

#include "diagnose/evidence.hpp"

namespace forksight::suspects {

// A finding is about this process, or about a child that it forked: that finding tells what its threads wait for.
inline bool has_finding(const Evidence& evidence, model::ProcessId id, const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings, [&](const Finding& finding) {
    const bool is_parent = finding.fork && finding.fork->pid == evidence.process(id).pid;
    return is_parent || std::ranges::find(finding.processes, id) != finding.processes.end();
  });
}

}  // namespace forksight::suspects
