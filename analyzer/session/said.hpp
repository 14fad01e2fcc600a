// What a run has reported so far, by the processes concerned. If these go on, it can be withdrawn; if not, it counts
// for the exit status.
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

class RunSaid {
 public:
  void note(const Verdicts& verdicts, const model::Model& model, const std::vector<Finding>& findings);
  // This process goes on. Returns the fingerprints of the findings for which no evidence is left.
  std::vector<std::string> withdraw(const proc::ProcessKey& key);
  // Withdraws findings that were not proven and are not found any more: their processes went on and then ended.
  std::map<std::int32_t, std::vector<std::string>> withdraw_unproven(const std::vector<Finding>& last);
  // Something at or above `least` was found and not withdrawn. `last` are the findings at the end. A process that hung
  // may have ended by then, so earlier findings are kept.
  bool has_at_least(Certainty least, const std::vector<Finding>& last) const;

 private:
  struct Said {
    Certainty harm = Certainty::kPossible;
    std::set<proc::ProcessKey> stuck;  // of the processes concerned
    bool is_proven = false;            // not judged only by age, as a call that has not returned for long
  };
  std::map<std::string, Said> said_;  // by fingerprint
};

}  // namespace forksight
