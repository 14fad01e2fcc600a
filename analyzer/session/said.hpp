// What a run has found so far, by the processes that it is about: so that it can be taken back if these go on, and
// counts for the exit status if they do not.
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
  // This process goes on. The fingerprints of the findings that nothing speaks for any more.
  std::vector<std::string> take_back(const proc::ProcessKey& key);
  // What was not proven, and is not found any more: its processes ended after they went on.
  std::map<std::int32_t, std::vector<std::string>> take_back_unproven(const std::vector<Finding>& last);
  // Something at or above `least` was found and stays. `last` is what was found at the end. A process that hung may be
  // gone by then: what was found once is kept.
  bool has_at_least(Certainty least, const std::vector<Finding>& last) const;

 private:
  struct Said {
    Certainty harm = Certainty::kPossible;
    std::set<proc::ProcessKey> stuck;  // of the processes that it is about
    bool is_proven = false;            // not by age alone, as a call that has not come back for long
  };
  std::map<std::string, Said> said_;  // by fingerprint
};

}  // namespace forksight
