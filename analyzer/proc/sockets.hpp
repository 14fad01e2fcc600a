// Which socket is at the other end of a connection, if that end is on this machine. For UNIX sockets the kernel answers
// by NETLINK_SOCK_DIAG, for TCP the table of the network namespace does. Nothing is sent or changed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace forksight::proc {

struct Peer {
  std::uint64_t inode = 0;
  // Bytes of TCP that the kernel moves by itself at some later time: of the peer, not sent or not acknowledged; of this
  // socket, sent and not acknowledged. When both ends are full, nothing moves any more.
  bool has_bytes_for_us = false;
  bool has_our_bytes = false;
  friend bool operator==(const Peer&, const Peer&) = default;
};

// The peer of a connected socket; nullopt: it has none on this machine, listens, or is of another kind. `tid`: a thread
// of the process that has it.
std::optional<Peer> find_peer(std::int32_t tid, std::uint64_t inode);

// A wait for it may end by itself: the socket has a receive or send timeout, a timeout for unacknowledged data, or a
// limited sending rate. nullopt: the kernel does not let forksight ask.
std::optional<bool> is_bound_to_time(std::int32_t pid, std::int32_t fd);

// Parses the answer of NETLINK_SOCK_DIAG about one UNIX socket. Pure.
std::optional<std::uint64_t> parse_unix_peer(std::span<const std::byte> answer, std::uint64_t inode);
// Parses the texts of /proc/net/tcp and tcp6. Pure.
std::optional<Peer> parse_tcp_peer(std::string_view tcp, std::string_view tcp6, std::uint64_t inode);

}  // namespace forksight::proc
