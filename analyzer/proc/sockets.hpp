// Which socket is at the other end of a connection, if that is on this machine: of UNIX sockets the kernel tells by
// NETLINK_SOCK_DIAG, of TCP by the table of the network namespace. Nothing is sent or changed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace forksight::proc {

// The inode of the peer of a connected socket; nullopt: it has none here, listens, or is of another kind.
// `tid`: a thread of the process that has it.
std::optional<std::uint64_t> find_peer(std::int32_t tid, std::uint64_t inode);

// A receive or send timeout is set on it, or one for unanswered data: such a wait may end by itself. nullopt: the
// kernel does not let us ask.
std::optional<bool> has_socket_timeout(std::int32_t pid, std::int32_t fd);

// What NETLINK_SOCK_DIAG answered about one UNIX socket. Pure.
std::optional<std::uint64_t> parse_unix_peer(std::span<const std::byte> answer, std::uint64_t inode);
// The texts of /proc/net/tcp and tcp6. Pure.
std::optional<std::uint64_t> parse_tcp_peer(std::string_view tcp, std::string_view tcp6, std::uint64_t inode);

}  // namespace forksight::proc
