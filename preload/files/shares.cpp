#include "files/shares.hpp"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "guest/proc_lines.hpp"
#include "guest/sys.hpp"
#include "record/slots.hpp"
#include "record/touch_events.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

FORKSIGHT_WRITTEN_AT_FORK constinit std::uint32_t g_shared_epolls = 0;
FORKSIGHT_WRITTEN_AT_FORK constinit std::uint32_t g_shared_connections = 0;

namespace {

using trace::ShareKind;

constexpr std::uint32_t kMaxShares = 16;
// After this number of recorded forks, shares alone are no longer a reason to record a fork.
constexpr std::uint32_t kMaxRecordedForks = 64;
constexpr std::size_t kStackBytes = 4U << 10U;

constinit Share g_shares[kMaxShares] = {};
constinit std::uint32_t g_share_count = 0;  // how many entries were ever in use: the hooks examine only these
FORKSIGHT_WRITTEN_AT_FORK constinit bool g_is_recorded = false;
FORKSIGHT_WRITTEN_AT_FORK constinit std::int32_t g_pid = 0;       // pid_of_shares()
FORKSIGHT_WRITTEN_AT_FORK constinit std::uint64_t g_made_by = 0;  // ref of the fork that made this process; 0: none
constinit std::uint32_t g_recorded_forks = 0;

std::uint32_t& count_of(ShareKind kind) { return kind == ShareKind::kEpoll ? g_shared_epolls : g_shared_connections; }

int fd_of(const Share& share) { return __atomic_load_n(&share.fd_plus_one, __ATOMIC_ACQUIRE) - 1; }

// Notes that the open file is not shared with another process, as far as the shim knows.
void unshare(Share& share) {
  if (__atomic_exchange_n(&share.record, 0, __ATOMIC_ACQ_REL) != 0) {
    __atomic_fetch_sub(&count_of(share.kind), 1, __ATOMIC_RELAXED);
  }
  share.is_inherited = false;
  share.added_count = 0;
}

void drop(Share& share) {
  unshare(share);
  __atomic_store_n(&share.fd_plus_one, 0, __ATOMIC_RELEASE);
}

FileId id_of(const struct stat& status) { return {status.st_dev, status.st_ino, status.st_mode}; }

__attribute__((noinline)) bool is_epoll(int fd) {
  constexpr char kName[] = "anon_inode:[eventpoll]";
  char name[sizeof kName];
  const ProcPath path(0, "fd/", fd);
  const long bytes = sys::call(SYS_readlinkat, AT_FDCWD, sys::word(path.text()), sys::word(name), sizeof name);
  return bytes == sizeof kName - 1 && memcmp(name, kName, sizeof kName - 1) == 0;
}

__attribute__((noinline)) bool is_connected(int fd) {
  sockaddr address{};
  socklen_t bytes = sizeof address;
  return sys::call(SYS_getpeername, fd, sys::word(&address), sys::word(&bytes)) == 0;
}

// True if the descriptor still refers to a file of the kind that the entry says. The file may be another epoll
// instance, or another connection, than before.
bool is_open(const Share& share) {
  const int fd = fd_of(share);
  return fd >= 0 && (share.kind == ShareKind::kEpoll ? is_epoll(fd) : is_connected(fd));
}

__attribute__((noinline)) void record_share(Share& share, std::uint64_t fork) {
  FileId file{};
  if (!is_open(share) || !find_open_file(fd_of(share), file)) return drop(share);
  Record record(trace::RecordType::kShare, sizeof(trace::ShareRecord), Importance::kFinding);
  if (!record) return;
  auto* const fixed = record.as<trace::ShareRecord>();
  fixed->fork = fork;
  fixed->kind = share.kind;
  fixed->fd = fd_of(share);
  fixed->owner = g_pid;
  fixed->device = file.device;
  fixed->inode = file.inode;
  fixed->users[0] = static_cast<std::uint32_t>(g_pid);
  fixed->users[1] = static_cast<std::uint32_t>(g_pid);
  if (share.kind == ShareKind::kConnection) {
    // The kernel gets the buffer size from a local variable: other processes could change a size in the record.
    std::uint32_t bytes = sizeof fixed->peer;
    const long answer = sys::call(SYS_getpeername, fd_of(share), sys::word(fixed->peer), sys::word(&bytes));
    fixed->peer_bytes = answer == 0 ? bytes : 0;
  }
  __atomic_store_n(&share.record, record.commit(), __ATOMIC_RELEASE);
  __atomic_fetch_add(&count_of(share.kind), 1, __ATOMIC_RELAXED);
}

// Drops a connection if its descriptor refers to another file now. The shim cannot find this out for epoll instances,
// because the kernel shows the same inode for all of them.
void review(Share& share) {
  FileId file{};
  const trace::ShareRecord* const record = shared_record(share);
  const bool is_same =
      record != nullptr && find_open_file(fd_of(share), file) && file.is_same({record->device, record->inode, 0});
  if (!is_same) drop(share);
}

}  // namespace

__attribute__((noinline)) bool find_open_file(int fd, FileId& out) {
  struct stat status {};
  if (sys::call(SYS_fstat, fd, sys::word(&status)) != 0) return false;
  out = id_of(status);
  return true;
}

__attribute__((noinline)) bool find_open_file_of(std::int32_t pid, int fd, FileId& out) {
  struct stat status {};
  if (pid <= 0 || fd < 0) return false;
  const ProcPath path(pid, "fd/", fd);
  if (sys::call(SYS_newfstatat, AT_FDCWD, sys::word(path.text()), sys::word(&status), 0) != 0) return false;
  out = id_of(status);
  return true;
}

void note_share(int fd, ShareKind kind) {
  for (std::uint32_t i = 0; i < g_share_count; ++i) {
    if (fd_of(g_shares[i]) != fd) continue;
    unshare(g_shares[i]);
    g_shares[i].kind = kind;
    return;
  }
  for (std::uint32_t i = 0; i < kMaxShares; ++i) {
    Share& share = g_shares[i];
    std::int32_t expected = 0;
    // Reserves the entry first, with a value that no look-up finds.
    if (!__atomic_compare_exchange_n(&share.fd_plus_one, &expected, -1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      continue;
    }
    share.kind = kind;
    __atomic_store_n(&share.fd_plus_one, fd + 1, __ATOMIC_RELEASE);
    std::uint32_t count = __atomic_load_n(&g_share_count, __ATOMIC_RELAXED);
    while (count <= i &&
           !__atomic_compare_exchange_n(&g_share_count, &count, i + 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    return;
  }
}

Share* find_shared(int fd, ShareKind kind) {
  for (std::uint32_t i = 0; i < g_share_count; ++i) {
    Share& share = g_shares[i];
    if (share.record != 0 && fd_of(share) == fd && share.kind == kind) return &share;
  }
  return nullptr;
}

trace::ShareRecord* shared_record(const Share& share) {
  return find_record<trace::ShareRecord>(share.record, trace::RecordType::kShare);
}

std::int32_t pid_of_shares() { return g_pid; }

std::uint64_t append_share_use(const Share& share, trace::ShareUseRecord use, const Site& site) {
  use.share = share.record;
  use.fork = g_made_by;
  use.stack = append_stack(site, t_slot, kStackBytes, false, Importance::kFinding);
  const std::uint64_t reference = append(trace::RecordType::kShareUse, use, Importance::kFinding);
  touch_recorded(reference);
  return reference;
}

bool at_fork::Shares::tells() {
  if (FORKSIGHT_LIKELY(g_share_count == 0) || g_recorded_forks >= kMaxRecordedForks) return false;
  for (std::uint32_t i = 0; i < g_share_count; ++i) {
    if (is_open(g_shares[i])) return true;
  }
  return false;
}

void at_fork::Shares::records(const Fork& fork_now) {
  const std::uint64_t fork = fork_now.record;
  if (FORKSIGHT_LIKELY(g_share_count == 0) || fork == 0) return;
  g_pid = sys::getpid();
  g_is_recorded = true;
  if (g_recorded_forks < kMaxRecordedForks) ++g_recorded_forks;
  for (std::uint32_t i = 0; i < g_share_count; ++i) {
    Share& share = g_shares[i];
    if (fd_of(share) < 0) continue;
    if (share.record == 0) {
      record_share(share, fork);
    } else if (share.kind == ShareKind::kConnection) {
      review(share);
    }
  }
}

void at_fork::Shares::continues(const Fork&) {
  if (g_is_recorded) g_is_recorded = false;
}

void at_fork::Shares::starts_any(std::uint64_t fork) {
  if (FORKSIGHT_LIKELY(g_share_count == 0)) return;
  const bool is_current = g_is_recorded && fork != 0;
  g_is_recorded = false;
  g_made_by = is_current ? fork : 0;
  g_pid = sys::getpid();
  for (std::uint32_t i = 0; i < g_share_count; ++i) {
    Share& share = g_shares[i];
    if (is_current && share.record != 0) {
      share.is_inherited = true;
    } else {
      drop(share);
    }
  }
}

}  // namespace forksight
