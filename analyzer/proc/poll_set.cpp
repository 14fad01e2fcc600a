#include "proc/poll_set.hpp"

#include <linux/kcmp.h>
#include <poll.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <unordered_set>

#include "files/dead_places.hpp"
#include "proc/descriptors.hpp"
#include "proc/proc_fs.hpp"
#include "proc/process_memory.hpp"
#include "proc/thread_sample.hpp"

namespace forksight::proc {
namespace {

using Descriptors = std::optional<std::vector<std::int32_t>>;

constexpr std::uint64_t kMost = 1U << 14U;

Descriptors read_poll(const ThreadSample& thread) {
  const std::uint64_t count = static_cast<std::uint32_t>(thread.call.args[1]);
  if (count > kMost) return std::nullopt;
  std::vector<pollfd> entries(count);
  if (!ProcessMemory(thread.tid).read(thread.call.args[0], std::as_writable_bytes(std::span(entries))))
    return std::nullopt;
  std::vector<std::int32_t> fds;
  std::unordered_set<std::int32_t> seen;
  for (const pollfd& entry : entries) {
    if (entry.fd >= 0 && seen.insert(entry.fd).second) fds.push_back(entry.fd);
  }
  return fds;
}

Descriptors read_select(const ThreadSample& thread) {
  constexpr std::size_t kBits = 64;
  const std::uint64_t count = static_cast<std::uint32_t>(thread.call.args[0]);
  if (count > kMost) return std::nullopt;
  std::vector<std::uint64_t> any((count + kBits - 1) / kBits);
  const ProcessMemory memory(thread.tid);
  for (std::size_t set = 1; set <= 3; ++set) {
    if (thread.call.args[set] == 0) continue;
    std::vector<std::uint64_t> bits(any.size());
    if (!memory.read(thread.call.args[set], std::as_writable_bytes(std::span(bits)))) return std::nullopt;
    for (std::size_t word = 0; word < any.size(); ++word) any[word] |= bits[word];
  }
  std::vector<std::int32_t> fds;
  for (std::size_t fd = 0; fd < count; ++fd) {
    if ((any[fd / kBits] >> (fd % kBits) & 1U) != 0) fds.push_back(static_cast<std::int32_t>(fd));
  }
  return fds;
}

// True if the number under which a file was added to the epoll instance still belongs to this file. The epoll instance
// watches the file while any process has it open, under any number. So the old number may belong to another file now.
// `earlier`: how many entries before this one have the same number.
bool is_watched_file(std::int32_t tid, std::int32_t poller, const EpollEntry& entry, std::uint32_t earlier) {
  kcmp_epoll_slot slot{static_cast<__u32>(poller), static_cast<__u32>(entry.fd), earlier};
  const long order = ::syscall(SYS_kcmp, tid, tid, KCMP_EPOLL_TFD, entry.fd, &slot);
  if (order >= 0) return order == 0;
  // If the kernel does not tell, only a socket can be identified, by its inode. The two ends of a pipe have the same
  // inode. All eventfds, timerfds and pidfds have the same inode, too.
  struct stat status {};
  const bool is_open = files::stat_living(proc_path(tid, "fd/" + std::to_string(entry.fd)), status) == 0;
  return is_open && S_ISSOCK(status.st_mode) && status.st_ino == entry.inode;
}

Descriptors read_epoll(const ThreadSample& thread) {
  constexpr std::size_t kMaxBytes = 4U << 20U;
  const auto poller = std::to_string(static_cast<std::int32_t>(thread.call.args[0]));
  const ReadText fdinfo = read_file(proc_path(thread.tid, "fdinfo/" + poller), kMaxBytes);
  if (!fdinfo || fdinfo.text.empty() || fdinfo.text.size() >= kMaxBytes) return std::nullopt;
  const auto entries = parse_epoll(fdinfo.text);
  if (!entries || entries->size() > kMost) return std::nullopt;
  std::vector<std::int32_t> fds;
  std::map<std::int32_t, std::uint32_t> seen;
  for (const EpollEntry& entry : *entries) {
    if (!is_watched_file(thread.tid, as_int(thread.call.args[0]), entry, seen[entry.fd]++)) return std::nullopt;
    fds.push_back(entry.fd);
  }
  return fds;
}

}  // namespace

bool is_epoll_wait(const Syscall& call) {
  return call.number == SYS_epoll_wait || call.number == SYS_epoll_pwait || call.number == SYS_epoll_pwait2;
}

Descriptors read_poll_set(const ThreadSample& thread) {
  switch (thread.call.number) {
    case SYS_poll:
    case SYS_ppoll: return read_poll(thread);
    case SYS_select:
    case SYS_pselect6: return read_select(thread);
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2: return read_epoll(thread);
    default: return std::nullopt;
  }
}

}  // namespace forksight::proc
