// Decides whether forksight ends hung processes, and which. Pure functions.
#pragma once

#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"
#include "proc/proc_fs.hpp"
#include "session/verdicts.hpp"

namespace forksight {

// True if one of `findings` is a reason to end the process tree. The finding must report, with at least the certainty
// `least`, that a process hangs. That process must be stuck now. If the process goes on and only some of its threads
// are stuck, the finding must be proven. A stuck process without a finding is no reason to end the tree.
bool has_hang_to_end(const Verdicts& verdicts, const model::Model& model, const std::vector<Finding>& findings,
                     Certainty least);

// Returns the processes to end: all processes of `tree`, and those processes outside of `tree` that can never go on. A
// process outside of `tree` is not ended if it still runs, spins, or only waits for another process: it may be a daemon
// with other work. Parents come before their children, so that no living parent starts a new child in place of an ended
// child.
std::vector<proc::ProcessKey> find_targets(std::vector<proc::ProcessKey> tree, const Verdicts& verdicts);

// Finds processes that can never go on by themselves: a finding proves that the process hangs, and its waits have no
// way out, except Ctrl-C in a Python script. The result does not contain victims. A victim may go on when the process
// that it waits for is ended.
std::vector<proc::ProcessKey> find_proven_dead(const Verdicts& verdicts, const model::Model& model,
                                               const std::vector<Finding>& findings);

}  // namespace forksight
