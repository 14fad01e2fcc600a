// Which processes the first line of a report counts.
#pragma once

#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"

namespace forksight::render {

// Returns one value for each process of the model. True: the user asked about the process, or about an ancestor of it.
// True also for another process on which something that was asked about depends: a finding names it as the process that
// hangs or that holds the lock, a process that counts waits for it, or lost threads when it forked a process that
// counts. False for an ancestor that only waits for the end of its child, such as the shell that started the job.
std::vector<bool> find_counted(const model::Model& model, const std::vector<Finding>& findings);

// True if the child lacks threads that its parent had.
bool lost_threads(const model::Fork& fork);

}  // namespace forksight::render
