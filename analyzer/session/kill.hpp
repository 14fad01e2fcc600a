// Decides whether a run ends processes that hang, and which of them. Pure functions.
#pragma once

#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"
#include "proc/proc_fs.hpp"
#include "session/verdicts.hpp"

namespace forksight {

// True if the tree should be ended because of one of these findings. The finding must report, with at least the
// certainty `least`, that a process hangs, and that process must be stuck now. If the process goes on and only some of
// its threads are stuck, the finding must be proven. A stuck process without a finding is no reason to end the tree.
bool has_hang_to_end(const Verdicts& verdicts, const model::Model& model, const std::vector<Finding>& findings,
                     Certainty least);

// Returns the processes to end: all processes of `tree`, and those processes outside of `tree` that can never go on. A
// process that left the tree and still runs, spins, or only waits for another one is not ended: it may be a daemon with
// other work. Parents come before their children, so that no living parent starts a new child in place of one that was
// ended.
std::vector<proc::ProcessKey> find_targets(std::vector<proc::ProcessKey> tree, const Verdicts& verdicts);

// Finds processes that can never go on by themselves. A finding proves that they hang, and their waits have no way out,
// except Ctrl-C in a Python script. The result does not contain victims, because they may go on after the process that
// they wait for is ended.
std::vector<proc::ProcessKey> find_proven_dead(const Verdicts& verdicts, const model::Model& model,
                                               const std::vector<Finding>& findings);

}  // namespace forksight
