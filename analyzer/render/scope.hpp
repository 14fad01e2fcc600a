// Which processes the first line of a report counts.
#pragma once

#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"

namespace forksight::render {

// Returns one value for each process of the model. True: the process counts. A process counts if the user asked about
// it, or about an ancestor of it. A process also counts if a finding names it as the process that hangs or that holds
// the lock. If a process counts, two kinds of other processes count, too: a process for which it waits, and a process
// that lost threads when it forked the counted process. False for an ancestor that only waits for the end of its child,
// such as the shell that started the job.
std::vector<bool> find_counted(const model::Model& model, const std::vector<Finding>& findings);

// True if the child lacks threads that its parent had.
bool lost_threads(const model::Fork& fork);

}  // namespace forksight::render
