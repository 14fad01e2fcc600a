#include "proc/descriptors.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "files/dead_places.hpp"
#include "proc/proc_fs.hpp"

namespace forksight::proc {
namespace {

constexpr std::string_view kTimerfdLink = "anon_inode:[timerfd]";

std::string link_path(std::int32_t tid, std::int32_t fd) { return proc_path(tid, fmt::format("fd/{}", fd)); }
ReadText read_fdinfo(std::int32_t tid, std::int32_t fd) {
  return read_file(proc_path(tid, fmt::format("fdinfo/{}", fd)));
}

// Returns the octal number in the "flags:" line of a descriptor's fdinfo. nullopt if there is no such line, for example
// because the descriptor was closed.
std::optional<int> parse_flags(std::string_view fdinfo) {
  const auto field = find_field(fdinfo, "flags");
  if (!field) return std::nullopt;
  unsigned flags = 0;
  const auto [stop, error] = std::from_chars(field->data(), field->data() + field->size(), flags, 8);
  if (error != std::errc{} || stop != field->data() + field->size()) return std::nullopt;
  return static_cast<int>(flags);
}

template <class T>
bool parse_after(std::string_view line, std::string_view name, int base, T& out) {
  const std::size_t at = line.find(name);
  if (at == std::string_view::npos) return false;
  line.remove_prefix(at + name.size());
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return std::from_chars(line.data(), line.data() + line.size(), out, base).ec == std::errc{};
}

Object of_inode(ObjectKind kind, std::uint64_t inode, std::string name) { return {kind, std::move(name), inode}; }

// True if the timer will expire by itself, or has expired and was not read since. Also true if `fdinfo` does not show
// this. The fields come from timerfd_show() of the kernel's fs/timerfd.c.
bool is_timer_armed(std::string_view fdinfo) {
  const auto left = find_field(fdinfo, "it_value");
  const auto ticks = find_field(fdinfo, "ticks");
  return !left || *left != "(0, 0)" || !ticks || *ticks != "0";
}

}  // namespace

std::string name_eventfd(std::string_view fdinfo) {
  const auto id = find_field(fdinfo, "eventfd-id");
  return id ? std::string(kEventfdName) + std::string(*id) : std::string();
}

std::optional<bool> is_same_file(std::int32_t tid, std::int32_t fd, std::int32_t other_tid, std::int32_t other_fd) {
  const long order = ::syscall(SYS_kcmp, tid, other_tid, KCMP_FILE, fd, other_fd);
  if (order < 0) return std::nullopt;
  return order == 0;
}

bool share_table(std::int32_t tid, std::int32_t other_tid) {
  return tid == other_tid || ::syscall(SYS_kcmp, tid, other_tid, KCMP_FILES, 0, 0) <= 0;
}

std::vector<std::int32_t> find_tables(std::int32_t pid) {
  const auto first = find_thread_that_lives(pid);
  if (!first && is_zombie(read_stat(pid).value_or(Stat{}))) return {};
  std::vector<std::int32_t> tables{first.value_or(pid)};
  for (const std::int32_t tid : list_numbers(proc_path(pid, "task")).numbers) {
    if (std::ranges::any_of(tables, [&](std::int32_t known) { return share_table(known, tid); })) continue;
    // A thread that has ended has no table.
    const auto stat = read_thread_stat(tid);
    if (stat && stat->state != 'Z' && stat->state != 'X') tables.push_back(tid);
  }
  return tables;
}

Object find_object(std::int32_t tid, std::int32_t fd) {
  auto link = read_link(link_path(tid, fd));
  if (!link) return {};
  if (const auto pipe = parse_pipe_link(*link)) return of_inode(ObjectKind::kPipe, *pipe, std::move(*link));
  if (const auto socket = parse_socket_link(*link)) return of_inode(ObjectKind::kSocket, *socket, std::move(*link));
  if (*link == kEventfdLink) {
    std::string name = name_eventfd(read_fdinfo(tid, fd).text);
    return name.empty() ? Object{} : Object{ObjectKind::kEventfd, std::move(name), 0};
  }
  if (*link == kTimerfdLink) {
    const bool is_armed = is_timer_armed(read_fdinfo(tid, fd).text);
    return {is_armed ? ObjectKind::kOther : ObjectKind::kTimerfd, std::move(*link), 0};
  }
  if (*link == "anon_inode:[eventpoll]") return {ObjectKind::kEpoll, std::move(*link), 0};
  if (*link == "anon_inode:[pidfd]") return {ObjectKind::kProcess, std::move(*link), 0};
  // A FIFO that still has a name counts as kOther: any process can open it at any time. Many services wait for such a
  // process.
  struct stat status {};
  const bool is_fifo = files::stat_living(link_path(tid, fd), status) == 0 && S_ISFIFO(status.st_mode);
  return {is_fifo && status.st_nlink == 0 ? ObjectKind::kFifo : ObjectKind::kOther, std::move(*link), 0};
}

bool is_signalling(std::string_view fdinfo) { return (parse_flags(fdinfo).value_or(0) & O_ASYNC) != 0; }

std::optional<std::vector<EpollEntry>> parse_epoll(std::string_view fdinfo) {
  std::vector<EpollEntry> entries;
  for (std::size_t start = 0; start < fdinfo.size();) {
    std::size_t end = fdinfo.find('\n', start);
    if (end == std::string_view::npos) end = fdinfo.size();
    const std::string_view line = fdinfo.substr(start, end - start);
    start = end + 1;
    if (!line.starts_with("tfd:")) continue;
    EpollEntry entry;
    if (!parse_after(line, "tfd:", 10, entry.fd) || !parse_after(line, " ino:", 16, entry.inode)) return std::nullopt;
    entries.push_back(entry);
  }
  return entries;
}

std::optional<std::int32_t> resolve_pidfd(std::int32_t pid, std::int32_t fd) {
  const ReadText text = read_file(proc_path(pid, "fdinfo/" + std::to_string(fd)));
  const auto field = text ? find_field(text.text, "Pid") : std::nullopt;
  const auto target = field ? parse_decimal(*field) : std::nullopt;
  if (!target || *target <= 0) return std::nullopt;
  return static_cast<std::int32_t>(*target);
}

}  // namespace forksight::proc
