// Which call for a file a thread is blocked in, and on which file system. A call on a network mount whose server is
// gone does not return. Everything here is read from /proc, which answers all the same.
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

// The file systems that may be the reason. Empty if that is the root file system, or is not known.
std::vector<files::DeadPlace> find_places(const BlockedCall& blocked, std::int32_t pid, std::int32_t tid);

// The mount in `mountinfo` (the text of /proc/PID/mountinfo, see proc(5)) on which `path` lies. Its folder is "" if
// none has it.
files::DeadPlace find_mount(std::string_view mountinfo, std::string_view path);

}  // namespace forksight::proc
