// Shared by rules that can only guess. Such a rule names a suspect, but only for a process that no better finding
// explains.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "diagnose/evidence.hpp"

namespace forksight::suspects {

// The processes that the findings of earlier rules explain. A look-up takes constant time, because there may be
// thousands of processes and of findings.
class Explained {
 public:
  explicit Explained(const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      processes_.insert(finding.processes.begin(), finding.processes.end());
      if (finding.fork) forkers_.insert(finding.fork->pid);
    }
  }

  // True if a finding is about this process, or about a child that it forked. That finding tells what the threads of
  // this process wait for.
  bool has(const Evidence& evidence, model::ProcessId id) const {
    return processes_.contains(id) || forkers_.contains(evidence.process(id).pid);
  }

 private:
  std::unordered_set<model::ProcessId> processes_;
  std::unordered_set<std::int32_t> forkers_;
};

}  // namespace forksight::suspects
