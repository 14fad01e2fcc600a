// Whether a run ends what hangs, and whom it ends then. Pure.
#pragma once

#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"
#include "proc/proc_fs.hpp"
#include "session/verdicts.hpp"

namespace forksight {

// Should the tree be ended for one of these: a hang at or above `least` of a process that is stuck now. That it is
// stuck, without a word why, is no reason; and a process that goes on beside threads of its own that are stuck is ended
// only where that is proven.
bool has_hang_to_end(const Verdicts& verdicts, const model::Model& model, const std::vector<Finding>& findings,
                     Certainty least);

// Parents first, so that none replaces a child that it lost: the tree, and what left it and is stuck for good.
std::vector<proc::ProcessKey> find_targets(std::vector<proc::ProcessKey> tree, const Verdicts& verdicts);

// Those that will never go on, whatever is ended or told beside them, where a finding proves that and says why. Their
// victims are not among them.
std::vector<proc::ProcessKey> find_proven_dead(const Verdicts& verdicts, const model::Model& model,
                                               const std::vector<Finding>& findings);

}  // namespace forksight
