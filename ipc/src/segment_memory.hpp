// Reserves memory for a segment before it is mapped. If there is not enough memory, these functions return an error.
// Without this check, a later write would cause SIGBUS, or the OOM killer would end a process.
#pragma once

#include <cstdint>
#include <string>

#include "forksight/ipc/result.hpp"

namespace forksight::ipc::detail {

// Returns the error cgroup_limit if a memory control group of this process, or a group above it, has less than `bytes`
// left. Both versions of control groups are checked.
result<void> check_control_group(std::uint64_t bytes);
// Allocates `bytes` of pages for the file. `where`: the name of the memory, for the text of an error.
result<void> allocate(int fd, std::uint64_t bytes, const std::string& where);

}  // namespace forksight::ipc::detail
