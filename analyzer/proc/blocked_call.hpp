// Tells in which call on a file a thread is blocked, and on which file system this file lies. A call on a network mount
// whose server is gone does not return. Everything here is read from /proc, which still answers in that case.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "files/dead_places.hpp"
#include "proc/proc_text.hpp"

namespace forksight::proc {

struct BlockedCall {
  Syscall call;          // if not in_syscall: the thread waits for a page of a mapped file
  std::string identity;  // this text stays the same until the thread has left the call
};

// Returns the call in which the thread is blocked. nullopt: the thread runs, or sleeps in a call that is not a call on
// a file.
std::optional<BlockedCall> find_blocked_call(std::int32_t pid, std::int32_t tid);

// Finds the file systems that may be the reason why the call does not return. Leaves out the root file system, and file
// systems that forksight cannot identify.
std::vector<files::DeadPlace> find_places(const BlockedCall& blocked, std::int32_t pid, std::int32_t tid);

// Returns the mount on which `path` lies. `mountinfo`: the text of /proc/PID/mountinfo, see proc(5). The folder of the
// result is "" if `path` lies on no mount of the text.
files::DeadPlace find_mount(std::string_view mountinfo, std::string_view path);

}  // namespace forksight::proc
