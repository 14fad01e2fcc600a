// Which call for a file a thread is blocked in, and on which file system. A call on a network mount whose server is
// gone does not return. Everything here is read from /proc, which still answers then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "files/dead_places.hpp"
#include "proc/proc_text.hpp"

namespace forksight::proc {

struct BlockedCall {
  Syscall call;          // not in_syscall: the thread waits for a page of a mapped file
  std::string identity;  // the same text as long as the thread has not left this call
};

// nullopt: the thread runs, or sleeps in a call that is not for a file.
std::optional<BlockedCall> find_blocked_call(std::int32_t pid, std::int32_t tid);

// Finds the file systems that may be the reason. Leaves out the root file system, and those that cannot be identified.
std::vector<files::DeadPlace> find_places(const BlockedCall& blocked, std::int32_t pid, std::int32_t tid);

// The mount in `mountinfo` (the text of /proc/PID/mountinfo, see proc(5)) on which `path` lies. The folder of the
// result is "" if `path` lies on no mount of the text.
files::DeadPlace find_mount(std::string_view mountinfo, std::string_view path);

}  // namespace forksight::proc
