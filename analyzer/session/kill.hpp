// Whether a run ends what hangs, and which processes it ends then. Pure.
#pragma once

#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"
#include "proc/proc_fs.hpp"
#include "session/verdicts.hpp"

namespace forksight {

// True if the tree should be ended because of one of these findings: a hang at or above `least` of a process that is
// stuck now. A stuck process without a finding is no reason. A process that goes on while some threads of it are stuck
// is ended only if that is proven.
bool has_hang_to_end(const Verdicts& verdicts, const model::Model& model, const std::vector<Finding>& findings,
                     Certainty least);

// The tree, and processes that left it and are stuck for ever. Parents come first, so that none replaces a child that
// it lost.
std::vector<proc::ProcessKey> find_targets(std::vector<proc::ProcessKey> tree, const Verdicts& verdicts);

// Processes that can never go on, whatever is ended beside them, and for which a finding proves that and gives the
// cause. Their victims are not included.
std::vector<proc::ProcessKey> find_proven_dead(const Verdicts& verdicts, const model::Model& model,
                                               const std::vector<Finding>& findings);

}  // namespace forksight
