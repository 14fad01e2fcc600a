// Finds the processes that `forksight why` is asked about, by process id, thread id or name of a program, or every
// process of the user.
#pragma once

#include <string>
#include <vector>

#include "proc/proc_fs.hpp"
#include "result.hpp"

namespace forksight {

// Finds the processes that these words mean. The result is in the order of the words. Processes that one word means are
// in the order of pids. Leaves out processes that descend from another process of the result. A number means the
// process with this id, or the process that has the thread with this id. Any other word is the name of a program, or of
// the script that an interpreter runs. Such a word means all processes of the user with that name; for root, the
// processes of all users. Such a word never means this process or its ancestors. The error is one sentence about the
// first word for which there is no process.
Result<std::vector<proc::ProcessKey>> find_targets(const std::vector<std::string>& words);

// Finds every process of the user; for root, of the machine. Leaves out the processes that descend from another process
// of the result, and also this process and its ancestors.
std::vector<proc::ProcessKey> find_all_targets();

}  // namespace forksight
