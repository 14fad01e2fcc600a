// Descriptors from one process to another of the same user, over a connected AF_UNIX socket: eight bytes that say what
// they are of, and one or two descriptors with them.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "descriptor.hpp"
#include "forksight/ipc/options.hpp"
#include "forksight/ipc/result.hpp"

namespace forksight::ipc::detail {

struct letter_kind {
  std::uint32_t magic;
  const char* what;  // "queue"
};
constexpr std::size_t kMostDescriptors = 2;
using descriptors = std::array<descriptor, kMostDescriptors>;

// One or two. Errors: untrusted, timeout, system.
result<void> send_descriptors(int socket, const letter_kind& kind, std::span<const int> fds, deadline until);
// The first is there, the second perhaps. Errors: untrusted, abi_mismatch, closed, fd_limit, timeout, system.
result<descriptors> receive_descriptors(int socket, const letter_kind& kind, deadline until);

}  // namespace forksight::ipc::detail
