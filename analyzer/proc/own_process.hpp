// Tells which processes are forksight's own. A forksight command reads data of other users in a child process. The
// process that the user started waits for this child (guard/child.hpp). forksight must count neither of these two
// processes among the processes that it examines.
#pragma once

#include <sys/types.h>

#include <vector>

namespace forksight::proc {

// Notes the process that waits for this one.
void set_guard(pid_t guard);
// Notes a child of forksight that forksight could not end.
void note_own_process(pid_t pid);

// Notes the effective user of the command. The process that parses may have given up this user since.
void note_caller(uid_t user);
// Returns the noted user; if none is noted, the effective user of this process.
uid_t caller();

// Returns this process, the process that set_guard() has noted, and the processes that note_own_process() has noted.
std::vector<pid_t> own_processes();
bool is_own_process(pid_t pid);

}  // namespace forksight::proc
