// Whether another process has ended, by a descriptor that a reused pid cannot fool.
#pragma once

#include <cstdint>

#include "descriptor.hpp"

namespace forksight::ipc_cuda::detail {

class process_watch {
 public:
  process_watch() = default;
  // `start`: field 22 of /proc/PID/stat, of which the bits of `mask` count.
  process_watch(std::uint32_t pid, std::uint64_t start, std::uint64_t mask = ~std::uint64_t{0});
  // Its last thread has ended. False for a process of which nothing is known.
  bool has_ended() const;

 private:
  ipc::detail::descriptor pidfd_;
  bool was_gone_ = false;
};

}  // namespace forksight::ipc_cuda::detail
