// The findings that a run has reported so far, and the processes that each finding is about. If these processes go on,
// the finding can be withdrawn. A finding that is not withdrawn counts for the exit status.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"
#include "proc/proc_fs.hpp"
#include "session/verdicts.hpp"

namespace forksight {

class ReportedFindings {
 public:
  void note(const Verdicts& verdicts, const model::Model& model, const std::vector<Finding>& findings);
  // Notes that this process goes on. Withdraws the findings about this process and no other stuck process, and returns
  // their fingerprints.
  std::vector<std::string> withdraw(const proc::ProcessKey& key);
  // Withdraws the findings that were not proven and that are not in `last`, because their processes went on and then
  // ended. Returns their fingerprints, by pid.
  std::map<std::int32_t, std::vector<std::string>> withdraw_unproven(const std::vector<Finding>& last);
  // True if a finding at or above `least` was reported and not withdrawn, or is among `last`, the findings at the end.
  // The earlier findings count, too, because a process that hung may have ended by then.
  bool has_at_least(Certainty least, const std::vector<Finding>& last) const;

 private:
  struct Reported {
    Certainty harm = Certainty::kPossible;
    std::set<proc::ProcessKey> stuck;  // the stuck processes that the finding is about
    bool is_proven = false;            // true: the hang is proven, or no process of the finding was stuck
  };
  std::map<std::string, Reported> reported_findings_;  // by fingerprint
};

}  // namespace forksight
