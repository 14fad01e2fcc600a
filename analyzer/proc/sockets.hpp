// Which socket is at the other end of a connection, if that is on this machine: of UNIX sockets the kernel tells by
// NETLINK_SOCK_DIAG, of TCP by the table of the network namespace. Nothing is sent or changed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace forksight::proc {

struct Peer {
  std::uint64_t inode = 0;
  // Bytes of TCP that the kernel moves by itself, at a time of its own: of the peer, not sent or not acknowledged; of
  // the asked socket, sent and not acknowledged. What is full at both ends moves no more.
  bool has_bytes_for_us = false;
  bool has_our_bytes = false;
  friend bool operator==(const Peer&, const Peer&) = default;
};

// The peer of a connected socket; nullopt: it has none here, listens, or is of another kind. `tid`: a thread of the
// process that has it.
std::optional<Peer> find_peer(std::int32_t tid, std::uint64_t inode);

// A wait for it may end by itself: a receive or send timeout is set on it, one for unanswered data, or a rate at which
// it sends. nullopt: the kernel does not let us ask.
std::optional<bool> is_bound_to_time(std::int32_t pid, std::int32_t fd);

// What NETLINK_SOCK_DIAG answered about one UNIX socket. Pure.
std::optional<std::uint64_t> parse_unix_peer(std::span<const std::byte> answer, std::uint64_t inode);
// The texts of /proc/net/tcp and tcp6. Pure.
std::optional<Peer> parse_tcp_peer(std::string_view tcp, std::string_view tcp6, std::uint64_t inode);

}  // namespace forksight::proc
