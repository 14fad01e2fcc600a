// Which processes are forksight's own. A verb that reads what strangers control does so in a child process, and the
// process that was started waits for it (command/guarded.hpp). Neither belongs to what is looked at.
#pragma once

#include <sys/types.h>

#include <vector>

namespace forksight::proc {

// Notes the process that waits for this one.
void set_guard(pid_t guard);

// This process, and its guard if there is one.
std::vector<pid_t> own_processes();
bool is_own_process(pid_t pid);

}  // namespace forksight::proc
