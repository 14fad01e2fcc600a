// Shared by rules that report a process only if no better finding explains it. Most of these rules can only guess a
// suspect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "diagnose/evidence.hpp"

namespace forksight::suspects {

// The processes that findings explain. Each finding is read only once, because there may be thousands of processes and
// of findings.
class Explained {
 public:
  // True if a finding is about this process, or about a child that it forked. That finding tells what the threads of
  // this process wait for. `findings` may have grown since the last call.
  bool has(const Evidence& evidence, model::ProcessId id, const std::vector<Finding>& findings) {
    return has_about(id, findings) || forkers_.contains(evidence.process(id).pid);
  }

  // True if a finding is about this process.
  bool has_about(model::ProcessId id, const std::vector<Finding>& findings) {
    for (; known_ < findings.size(); ++known_) {
      const Finding& finding = findings[known_];
      processes_.insert(finding.processes.begin(), finding.processes.end());
      if (finding.fork) forkers_.insert(finding.fork->pid);
    }
    return processes_.contains(id);
  }

 private:
  std::size_t known_ = 0;  // the findings that have been read
  std::unordered_set<model::ProcessId> processes_;
  std::unordered_set<std::int32_t> forkers_;
};

}  // namespace forksight::suspects
