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
  // Notes that this process goes on. Withdraws each finding about this process, unless another process of the finding
  // is still stuck. Returns the fingerprints of the withdrawn findings.
  std::vector<std::string> withdraw(const proc::ProcessKey& key);
  // Withdraws a finding if it is about a stuck process, was not proven, and is not in `last`. The processes of such a
  // finding went on and then ended. Returns the fingerprints of the withdrawn findings, by pid.
  std::map<std::int32_t, std::vector<std::string>> withdraw_unproven(const std::vector<Finding>& last);
  // True if a finding at or above `least` was reported and not withdrawn, or is in `last`. `last`: the findings at the
  // end of the run. A reported finding may be missing in `last`, because the hung process has ended.
  bool has_at_least(Certainty least, const std::vector<Finding>& last) const;

 private:
  struct Reported {
    Certainty harm = Certainty::kPossible;
    std::set<proc::ProcessKey> stuck;  // the stuck processes that the finding is about
    bool is_proven = false;            // true: the hang is proven, or no process of the finding was stuck
  };
  std::map<std::string, Reported> reported_findings_;  // by fingerprint
};

// Returns the stuck processes that the report of these findings names: the processes of the findings, their victims,
// and the processes that no finding explains.
std::set<proc::ProcessKey> find_named(const Verdicts& verdicts, const model::Model& model,
                                      const std::vector<Finding>& findings);

}  // namespace forksight
