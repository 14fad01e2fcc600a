// Passes descriptors to another process of the same user, or of root, over a connected AF_UNIX socket. A transfer
// consists of eight bytes, which say what is sent, and of one or two descriptors.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "descriptor.hpp"
#include "forksight/ipc/options.hpp"
#include "forksight/ipc/result.hpp"

namespace forksight::ipc::detail {

struct transfer_kind {
  std::uint32_t magic;
  const char* what;  // "queue"
};
constexpr std::size_t kMostDescriptors = 2;
using descriptors = std::array<descriptor, kMostDescriptors>;

// Sends one or two descriptors. Errors: untrusted, fd_limit, timeout, system.
result<void> send_descriptors(int socket, const transfer_kind& kind, std::span<const int> fds, deadline until);
// Receives one or two descriptors. The first one is always open on success. Errors: untrusted, abi_mismatch, closed,
// fd_limit, timeout, system.
result<descriptors> receive_descriptors(int socket, const transfer_kind& kind, deadline until);

}  // namespace forksight::ipc::detail
