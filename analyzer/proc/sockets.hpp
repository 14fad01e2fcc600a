// Finds the socket at the other end of a connection, if that end is on this machine. For UNIX sockets, forksight asks
// the kernel (NETLINK_SOCK_DIAG). For TCP sockets, it reads /proc/TID/net/tcp and tcp6, the tables of the network
// namespace. The connection is not touched.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace forksight::proc {

struct Peer {
  std::uint64_t inode = 0;
  // TCP only: data that the kernel may still deliver although neither process makes a call.
  // `has_bytes_for_us`: the peer's socket has data for this socket that was not sent yet, or not acknowledged.
  // `has_our_bytes`: this socket has sent data that the peer's socket has not acknowledged. Unsent data does not count:
  // if the send buffer of this socket and the receive buffer of the peer are full, the kernel moves no data.
  bool has_bytes_for_us = false;
  bool has_our_bytes = false;
  friend bool operator==(const Peer&, const Peer&) = default;
};

// The peer of a connected socket. nullopt: the socket has no peer on this machine, listens, or is neither a UNIX nor a
// TCP socket.
// `tid`: a thread of the process that has the socket.
std::optional<Peer> find_peer(std::int32_t tid, std::uint64_t inode);

// True if a wait for the socket may end by itself: the socket has a receive or send timeout, a timeout for
// unacknowledged data, or a limited sending rate. nullopt: the kernel does not let forksight ask.
// `tid`: a thread of process `pid`. `fd` is a descriptor in the descriptor table of this thread.
std::optional<bool> is_bound_to_time(std::int32_t pid, std::int32_t tid, std::int32_t fd);

// Opens a NETLINK_SOCK_DIAG socket in the network namespace of `tid`. On failure, returns -1 and sets errno.
int open_diagnosis_of(std::int32_t tid);

// Parses the answer of NETLINK_SOCK_DIAG about one UNIX socket. A pure function.
std::optional<std::uint64_t> parse_unix_peer(std::span<const std::byte> answer, std::uint64_t inode);
// Parses the texts of /proc/net/tcp and tcp6. A pure function.
std::optional<Peer> parse_tcp_peer(std::string_view tcp, std::string_view tcp6, std::uint64_t inode);

}  // namespace forksight::proc
