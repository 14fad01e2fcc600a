// Room for a segment, asked for before it is mapped: what is not there is an error now, not SIGBUS or the OOM killer at
// some write later.
#pragma once

#include <cstdint>
#include <string>

#include "forksight/ipc/result.hpp"

namespace forksight::ipc::detail {

// Is `bytes` more than what the memory control group (v2) of this process has left.
result<void> check_control_group(std::uint64_t bytes);
// Gives the file all of its pages. `where`: for the text.
result<void> allocate(int fd, std::uint64_t bytes, const std::string& where);

}  // namespace forksight::ipc::detail
