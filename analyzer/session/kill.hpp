// Decides whether a run ends processes that hang, and which of them. Pure functions.
#pragma once

#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"
#include "proc/proc_fs.hpp"
#include "session/verdicts.hpp"

namespace forksight {

// True if the tree should be ended because of one of these findings: it reports a hang with at least the certainty
// `least`, of a process that is stuck now. A stuck process without a finding is no reason. If a process goes on and
// only some of its threads are stuck, the finding must be proven.
bool has_hang_to_end(const Verdicts& verdicts, const model::Model& model, const std::vector<Finding>& findings,
                     Certainty least);

// The processes of `tree`, and processes that left the tree and are stuck for ever. Parents come before their children,
// so that no living parent starts a new child in place of one that was ended.
std::vector<proc::ProcessKey> find_targets(std::vector<proc::ProcessKey> tree, const Verdicts& verdicts);

// Processes that can never go on by themselves: a finding proves that they hang, and there is no way out of their
// waits but Ctrl-C in a script of Python. Victims of other processes are not included, because they may go on when
// those are ended.
std::vector<proc::ProcessKey> find_proven_dead(const Verdicts& verdicts, const model::Model& model,
                                               const std::vector<Finding>& findings);

}  // namespace forksight
