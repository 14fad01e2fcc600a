// The findings that a run has reported so far, and the processes that each is about. If these processes go on, the
// finding can be withdrawn. Otherwise it counts for the exit status.
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
  // This process goes on. Returns the fingerprints of the findings for which no evidence is left.
  std::vector<std::string> withdraw(const proc::ProcessKey& key);
  // Withdraws findings that were not proven and that are not among the last findings: their processes went on, and then
  // ended. Returns the fingerprints, by pid.
  std::map<std::int32_t, std::vector<std::string>> withdraw_unproven(const std::vector<Finding>& last);
  // True if a finding at or above `least` was reported and not withdrawn, or is among `last`, the findings at the end.
  // The earlier findings count, too, because a process that hung may have ended by then.
  bool has_at_least(Certainty least, const std::vector<Finding>& last) const;

 private:
  struct Reported {
    Certainty harm = Certainty::kPossible;
    std::set<proc::ProcessKey> stuck;  // the processes that the finding is about
    bool is_proven = false;            // false: the only evidence is that a call has not returned for long
  };
  std::map<std::string, Reported> reported_findings_;  // by fingerprint
};

}  // namespace forksight
