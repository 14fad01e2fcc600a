// Finds the socket at the other end of a connection, if that end is on this machine. For UNIX sockets,
// NETLINK_SOCK_DIAG answers. For TCP, the table of the network namespace is read. The connection is not touched.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace forksight::proc {

struct Peer {
  std::uint64_t inode = 0;
  // TCP only: bytes that the kernel may still move by itself. `has_bytes_for_us`: the peer has bytes that were not sent
  // or not acknowledged. `has_our_bytes`: this socket has bytes that were sent and not acknowledged. When the buffers
  // of both ends are full, nothing moves any more.
  bool has_bytes_for_us = false;
  bool has_our_bytes = false;
  friend bool operator==(const Peer&, const Peer&) = default;
};

// The peer of a connected socket. nullopt: the socket has no peer on this machine, listens, or is of another kind.
// `tid`: a thread of the process that has the socket.
std::optional<Peer> find_peer(std::int32_t tid, std::uint64_t inode);

// True if a wait for the socket may end by itself: the socket has a receive or send timeout, a timeout for
// unacknowledged data, or a limited sending rate. nullopt: the kernel does not let forksight ask.
// `tid`: a thread of process `pid` that has the descriptor.
std::optional<bool> is_bound_to_time(std::int32_t pid, std::int32_t tid, std::int32_t fd);

// Opens a NETLINK_SOCK_DIAG socket in the network namespace of `tid`. On failure, returns -1 and sets errno.
int open_diagnosis_of(std::int32_t tid);

// Parses the answer of NETLINK_SOCK_DIAG about one UNIX socket. A pure function.
std::optional<std::uint64_t> parse_unix_peer(std::span<const std::byte> answer, std::uint64_t inode);
// Parses the texts of /proc/net/tcp and tcp6. A pure function.
std::optional<Peer> parse_tcp_peer(std::string_view tcp, std::string_view tcp6, std::uint64_t inode);

}  // namespace forksight::proc
