// Tells whether another process has ended. It uses a pidfd, so a pid that is used again does not mislead it.
#pragma once

#include <cstdint>

#include "descriptor.hpp"

namespace forksight::ipc_cuda::detail {

class process_watch {
 public:
  process_watch() = default;
  // `start`: field 22 of /proc/PID/stat. Only the bits of `mask` are compared.
  process_watch(std::uint32_t pid, std::uint64_t start, std::uint64_t mask = ~std::uint64_t{0});
  // True if its last thread has ended. False if nothing is known about the process.
  bool has_ended() const;

 private:
  ipc::detail::descriptor pidfd_;
  bool was_gone_ = false;
};

}  // namespace forksight::ipc_cuda::detail
