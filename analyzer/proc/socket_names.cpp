#include "proc/socket_names.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "proc/proc_fs.hpp"
#include "proc/words.hpp"

namespace forksight::proc {
namespace {

constexpr std::size_t kMaxTable = 4U << 20U;
constexpr std::size_t kHexOfV4 = 8;
constexpr std::size_t kHexOfV6 = 32;

std::vector<std::string_view> split_words(std::string_view line, std::size_t most) {
  std::vector<std::string_view> words;
  while (words.size() < most) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.empty()) break;
    const std::size_t length = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, length));
    line.remove_prefix(length);
  }
  return words;
}

// Converts "0100007F:1F90" to "127.0.0.1:8080". The kernel writes the address as words in the byte order of the
// machine. Returns "" for port 0 and for invalid text.
std::string read_address(std::string_view word) {
  const std::size_t colon = word.find(':');
  unsigned port = 0;
  if (colon == std::string_view::npos || !parse_number(word.substr(colon + 1), port, 16) || port == 0) return {};
  const std::string_view hex = word.substr(0, colon);
  if (hex.size() != kHexOfV4 && hex.size() != kHexOfV6) return {};
  std::array<std::uint32_t, 4> words{};
  for (std::size_t at = 0; at < hex.size(); at += kHexOfV4) {
    if (!parse_number(hex.substr(at, kHexOfV4), words[at / kHexOfV4], 16)) return {};
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool is_v4 = hex.size() == kHexOfV4;
  if (::inet_ntop(is_v4 ? AF_INET : AF_INET6, words.data(), text.data(), text.size()) == nullptr) return {};
  return is_v4 ? fmt::format("{}:{}", text.data(), port) : fmt::format("[{}]:{}", text.data(), port);
}

}  // namespace

std::optional<SocketName> parse_inet_name(std::string_view table, std::string_view kind, std::uint64_t inode) {
  constexpr std::size_t kLocal = 1, kRemote = 2, kState = 3, kInode = 9;
  constexpr std::string_view kListen = "0A";
  std::optional<SocketName> found;
  for_each_line(table, [&](std::string_view line) {
    const auto words = split_words(line, kInode + 1);
    std::uint64_t its = 0;
    if (words.size() <= kInode || !parse_number(words[kInode], its) || its != inode || its == 0) return;
    found = SocketName{std::string(kind), read_address(words[kLocal]), read_address(words[kRemote]),
                       kind == "TCP" && words[kState] == kListen};
  });
  return found;
}

std::optional<SocketName> parse_unix_name(std::string_view table, std::uint64_t inode) {
  constexpr std::size_t kFlags = 3, kInode = 6;
  constexpr std::uint64_t kAccepts = 0x10000;  // __SO_ACCEPTCON
  std::optional<SocketName> found;
  for_each_line(table, [&](std::string_view line) {
    const auto words = split_words(line, kInode + 1);
    std::uint64_t its = 0;
    std::uint64_t flags = 0;
    if (words.size() <= kInode || !parse_number(words[kInode], its) || its != inode || its == 0) return;
    if (!parse_number(words[kFlags], flags, 16)) return;
    const auto after = static_cast<std::size_t>(words[kInode].data() + words[kInode].size() - line.data());
    const std::size_t path = std::min(line.find_first_not_of(' ', after), line.size());
    found = SocketName{"UNIX", std::string(line.substr(path)), "", (flags & kAccepts) != 0};
  });
  return found;
}

std::optional<SocketName> find_socket_name(std::int32_t tid, std::uint64_t inode) {
  struct Table {
    const char* file;
    const char* kind;
  };
  constexpr std::array<Table, 4> kTables{
      {{"net/tcp", "TCP"}, {"net/tcp6", "TCP"}, {"net/udp", "UDP"}, {"net/udp6", "UDP"}}};
  for (const Table& table : kTables) {
    if (auto name = parse_inet_name(read_file(proc_path(tid, table.file), kMaxTable).text, table.kind, inode))
      return name;
  }
  return parse_unix_name(read_file(proc_path(tid, "net/unix"), kMaxTable).text, inode);
}

std::string describe_socket(const SocketName& name) {
  std::string text = name.kind + " socket";
  if (!name.local.empty()) text += " " + name.local;
  if (name.listens) return text + ", listening";
  if (!name.remote.empty()) text += " to " + name.remote;
  return text;
}

}  // namespace forksight::proc
