// Finds the name of a socket (its addresses or its path) in the tables of its network namespace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace forksight::proc {

struct SocketName {
  std::string kind;    // "TCP", "UDP", "UNIX"
  std::string local;   // "127.0.0.1:80", "[::1]:80", "/run/app.sock"; "": it has none
  std::string remote;  // the same for the other end; "": it has no name, or the kernel does not show the name
  bool listens = false;
};

// `tid`: a thread of a process that has the socket. nullopt: the socket is of another kind, or in another network
// namespace.
std::optional<SocketName> find_socket_name(std::int32_t tid, std::uint64_t inode);

// Returns text such as "TCP socket 127.0.0.1:80, listening", "TCP socket 10.0.0.1:4040 to 10.0.0.2:80" or "UNIX socket
// /run/app.sock".
std::string describe_socket(const SocketName& name);

// Parses the texts of /proc/net/tcp, udp, tcp6, udp6. A pure function.
std::optional<SocketName> parse_inet_name(std::string_view table, std::string_view kind, std::uint64_t inode);
// Parses the text of /proc/net/unix. A pure function.
std::optional<SocketName> parse_unix_name(std::string_view table, std::uint64_t inode);

}  // namespace forksight::proc
