#include "files/file_locks.hpp"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <atomic>

#include "forksight/trace/format.hpp"
#include "guest/kept_errno.hpp"
#include "guest/proc_lines.hpp"
#include "guest/sys.hpp"
#include "record/slots.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

using trace::FileLockEvent;
using trace::FileLockKind;

constexpr std::uint32_t kMaxLocks = 16;
constexpr std::uint32_t kMaxRecordedForks = 64;
constexpr std::uint32_t kMaxEvents = 16;  // the most kFileLock records that one process writes
constexpr std::size_t kStackBytes = 16U << 10U;
constexpr std::uint32_t kPathBytes = 192;
constexpr FileLockEvent kNoEvent{};

enum class Stage : std::uint32_t { kFree, kWriting, kSet };

// Identifies a file, and contains its size and the time of its last modification. A change of these two shows that a
// process has written to the file.
struct FileState {
  std::uint64_t device;
  std::uint64_t inode;
  std::uint64_t bytes;
  timespec modified;
};

struct Lock {
  std::atomic<Stage> stage;
  FileLockKind kind;
  int fd;
  std::int32_t owner;
  bool is_exclusive;
  FileRange range;
  std::uint64_t taken_at;  // return address of the call that took the lock
  std::uint64_t fork;      // ref of the last recorded fork at which the lock was held; 0: none
  FileState state;         // of the file, at that fork
};

constinit Lock g_locks[kMaxLocks] = {};
// The number of locks in the table. In a process without file locks, the hooks read only this number.
constinit std::atomic<std::uint32_t> g_count{0};
constinit std::atomic<std::uint32_t> g_next_victim{0};
constinit std::atomic<std::uint32_t> g_events{0};
constinit std::uint32_t g_recorded_forks = 0;
// The last recorded fork.
constinit std::uint64_t g_fork = 0;           // ref of its record
constinit std::int32_t g_parent = 0;          // the forking process
constinit std::uint64_t g_parent_writes = 0;  // how often that process had called write() and similar functions
constinit bool g_knows_writes = false;        // whether g_parent_writes is known
constinit std::int32_t g_child = 0;           // the child; set in the child only
FORKSIGHT_WRITTEN_AT_FORK constinit bool g_is_recorded = false;

std::uint64_t end_of(const FileRange& range) { return range.bytes == 0 ? UINT64_MAX : range.start + range.bytes; }
bool covers(const FileRange& outer, const FileRange& inner) {
  return outer.start <= inner.start && end_of(outer) >= end_of(inner);
}
bool overlap(const FileRange& one, const FileRange& other) {
  return one.start < end_of(other) && other.start < end_of(one);
}
bool is_same(const FileRange& one, const FileRange& other) {
  return one.start == other.start && one.bytes == other.bytes;
}

void drop(Lock& lock) {
  if (lock.stage.exchange(Stage::kFree, std::memory_order_acq_rel) != Stage::kFree)
    g_count.fetch_sub(1, std::memory_order_relaxed);
}

bool is_set(const Lock& lock) { return lock.stage.load(std::memory_order_acquire) == Stage::kSet; }

__attribute__((noinline)) bool read_state(int fd, FileState& out) {
  struct stat status {};
  if (sys::call(SYS_fstat, fd, sys::word(&status)) != 0) return false;
  out = {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size), status.st_mtim};
  return true;
}

bool is_same_file(const FileState& one, const FileState& other) {
  return one.device == other.device && one.inode == other.inode;
}

bool is_written_since(const FileState& before, const FileState& now) {
  return before.bytes != now.bytes || before.modified.tv_sec != now.modified.tv_sec ||
         before.modified.tv_nsec != now.modified.tv_nsec;
}

const char* kernel_name(FileLockKind kind) {
  return kind == FileLockKind::kPosix ? "POSIX" : kind == FileLockKind::kFlock ? "FLOCK" : "OFDLCK";
}

const char* skip_blanks(const char* text) {
  while (*text == ' ' || *text == '\t') ++text;
  return text;
}

const char* skip_word(const char* text) {
  text = skip_blanks(text);
  while (*text != ' ' && *text != '\0') ++text;
  return skip_blanks(text);
}

// Parses a line such as "1: FLOCK  ADVISORY  WRITE 4240 08:01:77 0 EOF". Returns the text from the mode ("WRITE") on.
// Returns null for another kind of lock, and for a lock that a process waits for ("1: -> FLOCK").
const char* find_mode(const char* text, FileLockKind kind) {
  read_number(text);
  text = after(text, ": ");
  if (text == nullptr || (text = after(text, kernel_name(kind))) == nullptr) return nullptr;
  return skip_word(text);
}

// True if the open file at this descriptor has a lock of this kind that the process `owner` took. For locks of open
// file descriptions `owner` does not count, because the kernel names no process for such locks.
bool has_lock(int fd, FileLockKind kind, std::int32_t owner) {
  bool found = false;
  const ProcPath path(0, "fdinfo/", fd);
  for_each_line(path.text(), [&](const char* line) {
    const char* const lock = after(line, "lock:");
    const char* const mode = lock == nullptr ? nullptr : find_mode(skip_blanks(lock), kind);
    if (mode == nullptr) return true;
    const char* pid = skip_word(mode);
    found = kind == FileLockKind::kOfd || read_number(pid) == static_cast<std::uint64_t>(owner);
    return !found;
  });
  return found;
}

// The pid of another process whose flock() lock on this file conflicts with a lock of this process; 0: none.
// `is_exclusive`: the lock of this process is exclusive; otherwise it is shared.
std::int32_t find_flock(const FileState& file, bool is_exclusive) {
  const std::int32_t self = sys::getpid();
  std::int32_t holder = 0;
  for_each_line("/proc/locks", [&](const char* line) {
    const char* const mode = find_mode(line, FileLockKind::kFlock);
    if (mode == nullptr || (!is_exclusive && after(mode, "WRITE") == nullptr)) return true;
    const char* number = skip_word(mode);
    const auto pid = static_cast<std::int32_t>(read_number(number));
    number = skip_blanks(number);
    std::uint64_t place[2] = {};  // major and minor, in hexadecimal
    for (std::uint64_t& part : place) {
      for (; *number != ':' && *number != '\0'; ++number) {
        const char digit = *number;
        part = part * 16 + static_cast<std::uint64_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
      }
      if (*number == ':') ++number;
    }
    const bool is_it =
        place[0] == major(file.device) && place[1] == minor(file.device) && read_number(number) == file.inode;
    if (is_it && pid != self) holder = pid;
    return holder == 0;
  });
  return holder;
}

// Sets `out` to the number of times that a process has called write() and similar functions. Sends to sockets and
// writes to mapped memory do not count. False: the kernel does not say.
bool read_writes(std::int32_t pid, std::uint64_t& out) {
  bool found = false;
  const ProcPath path(pid, "io");
  for_each_line(path.text(), [&](const char* line) {
    const char* text = after(line, "syscw: ");
    if (text == nullptr) return true;
    out = read_number(text);
    found = true;
    return false;
  });
  return found;
}

// The pid of the process with a write lock of fcntl() in this range; 0: none. Asks the kernel whether it would grant a
// read lock. Only a write lock of another process prevents that.
std::int32_t find_writer(int fd, const FileRange& range) {
  struct flock asked {};
  asked.l_type = F_RDLCK;
  asked.l_whence = SEEK_SET;
  asked.l_start = static_cast<off_t>(range.start);
  asked.l_len = static_cast<off_t>(range.bytes);
  if (sys::call(SYS_fcntl, fd, F_GETLK, sys::word(&asked)) != 0 || asked.l_type != F_WRLCK) return 0;
  return asked.l_pid;
}

// The pid of a process whose lock prevents a lock of an open file description in this range; 0: none. -1: the lock of
// another open file description prevents the lock, and the kernel names no process for it.
std::int32_t find_ofd_writer(int fd, const FileRange& range, bool is_exclusive) {
  struct flock asked {};
  asked.l_type = is_exclusive ? F_WRLCK : F_RDLCK;
  asked.l_whence = SEEK_SET;
  asked.l_start = static_cast<off_t>(range.start);
  asked.l_len = static_cast<off_t>(range.bytes);
  if (sys::call(SYS_fcntl, fd, F_OFD_GETLK, sys::word(&asked)) != 0 || asked.l_type == F_UNLCK) return 0;
  return asked.l_pid == 0 ? -1 : asked.l_pid;
}

// True if this process and `pid` have the same open file at this descriptor.
bool is_shared_with(std::int32_t pid, int fd) {
  return sys::call(SYS_kcmp, pid, sys::getpid(), KCMP_FILE, fd, fd) == 0;
}

// Called in a child before it releases a lock of its parent. True if the kernel confirms that the parent still has the
// lock. For a lock of flock() or of an open file description, the kernel must also confirm that parent and child share
// the open file.
bool look_in_child(Lock& lock, const FileRange& range, const FileState& now, FileUnlock& out) {
  if (lock.kind != FileLockKind::kPosix) {
    if (!has_lock(lock.fd, lock.kind, lock.owner) || !is_shared_with(lock.owner, lock.fd)) return false;
    out.event = FileLockEvent::kReleased;
    return true;
  }
  if (!lock.is_exclusive || find_writer(lock.fd, range) != lock.owner) return false;
  out.event = FileLockEvent::kForeignUnlock;
  if (is_written_since(lock.state, now)) out.flags |= trace::kFileChanged;
  std::uint64_t own = 0;
  std::uint64_t parents = 0;
  if (!g_knows_writes || !read_writes(0, own) || !read_writes(lock.owner, parents)) return true;
  out.flags |= trace::kWriterKnown;
  if (own != 0) out.flags |= trace::kChildWrote;
  if (parents != g_parent_writes) out.flags |= trace::kParentWrote;
  return true;
}

// Called before the process that took a lock releases it. True if the process has lost the lock already.
bool look_in_owner(Lock& lock, const FileRange& range, const FileState& now, FileUnlock& out) {
  if (lock.kind == FileLockKind::kPosix || lock.fork == 0 || has_lock(lock.fd, lock.kind, lock.owner)) return false;
  out.event = FileLockEvent::kMissed;
  out.other = lock.kind == FileLockKind::kFlock ? find_flock(now, lock.is_exclusive)
                                                : find_ofd_writer(lock.fd, range, lock.is_exclusive);
  return true;
}

__attribute__((noinline)) std::uint32_t read_path(int fd, char* out, std::uint32_t room) {
  const ProcPath path(0, "fd/", fd);
  const long got = sys::call(SYS_readlinkat, AT_FDCWD, sys::word(path.text()), sys::word(out), room);
  return got > 0 ? static_cast<std::uint32_t>(got) : 0;
}

__attribute__((noinline)) void append_use(const Lock& lock, const FileUnlock& unlock, std::uint64_t stack) {
  char path[kPathBytes];
  const std::uint32_t bytes = read_path(lock.fd, path, sizeof path);
  const std::uint64_t taken = append_saved_stack({lock.taken_at, 0, 0}, nullptr, 0, trace::kStackCut);
  Record record(trace::RecordType::kFileLock, sizeof(trace::FileLockRecord) + bytes, Importance::kFinding);
  if (!record) return;
  *record.as<trace::FileLockRecord>() = {lock.fork,    stack,        taken,   lock.range.start, lock.range.bytes,
                                         lock.kind,    unlock.event, lock.fd, lock.owner,       unlock.other,
                                         unlock.flags, bytes,        0};
  memcpy(record.payload() + sizeof(trace::FileLockRecord), path, bytes);
  record.commit();
}

Lock* find_room(FileLockKind kind, int fd, const FileRange& range, std::int32_t owner) {
  for (Lock& lock : g_locks) {
    if (is_set(lock) && lock.kind == kind && lock.fd == fd && lock.owner == owner && is_same(lock.range, range)) {
      drop(lock);
      break;
    }
  }
  for (Lock& lock : g_locks) {
    Stage expected = Stage::kFree;
    if (lock.stage.compare_exchange_strong(expected, Stage::kWriting, std::memory_order_acq_rel)) return &lock;
  }
  // No hook sees close(), so entries of closed files stay. If the table is full, its entries are replaced in turn.
  Lock& victim = g_locks[g_next_victim.fetch_add(1, std::memory_order_relaxed) % kMaxLocks];
  Stage expected = Stage::kSet;
  if (!victim.stage.compare_exchange_strong(expected, Stage::kWriting, std::memory_order_acq_rel)) return nullptr;
  g_count.fetch_sub(1, std::memory_order_relaxed);
  return &victim;
}

}  // namespace

// Only the first forks of a process are recorded, because a process may fork for ever.
bool at_fork::FileLocks::tells() {
  if (FORKSIGHT_LIKELY(g_count.load(std::memory_order_relaxed) == 0)) return false;
  if (g_recorded_forks >= kMaxRecordedForks) return false;
  const std::int32_t self = sys::getpid();
  for (const Lock& lock : g_locks) {
    if (is_set(lock) && lock.owner == self) return true;
  }
  return false;
}

void at_fork::FileLocks::records(const Fork& fork_now) {
  const std::uint64_t fork = fork_now.record;
  if (fork == 0 || !tells()) return;
  const std::int32_t self = sys::getpid();
  bool any = false;
  for (Lock& lock : g_locks) {
    if (!is_set(lock) || lock.owner != self) continue;
    FileState now{};
    const bool is_open = read_state(lock.fd, now);
    if (is_open && has_lock(lock.fd, lock.kind, self)) {
      lock.state = now;
      lock.fork = fork;
      any = true;
      continue;
    }
    // If a child may have released the lock, the entry stays: the owner does not know that it has lost the lock.
    const bool may_be_lost = lock.kind != FileLockKind::kPosix && lock.fork != 0;
    if (!is_open || !may_be_lost || !is_same_file(now, lock.state)) drop(lock);
  }
  if (!any) return;
  ++g_recorded_forks;
  g_fork = fork;
  g_parent = self;
  g_knows_writes = read_writes(0, g_parent_writes);
  g_is_recorded = true;
}

void at_fork::FileLocks::continues(const Fork&) {
  if (FORKSIGHT_UNLIKELY(g_is_recorded)) g_is_recorded = false;
}

void at_fork::FileLocks::starts_any(std::uint64_t fork) {
  if (FORKSIGHT_LIKELY(!g_is_recorded)) return;
  g_is_recorded = false;
  for (Lock& lock : g_locks) {
    const Stage stage = lock.stage.load(std::memory_order_relaxed);
    // Removes entries that were half-written at the fork, and entries of earlier forks.
    if (stage == Stage::kWriting) lock.stage.store(Stage::kFree, std::memory_order_relaxed);
    if (stage == Stage::kSet && lock.fork != fork) drop(lock);
  }
  if (fork == 0 || fork != g_fork) return;
  g_child = sys::getpid();
  g_events.store(0, std::memory_order_relaxed);
}

void note_file_lock(FileLockKind kind, int fd, const FileRange& range, bool is_exclusive, const Site& site) {
  const KeptErrno kept;
  const std::int32_t self = sys::getpid();
  for (Lock& lock : g_locks) {
    const bool is_inherited = is_set(lock) && lock.kind == kind && lock.fd == fd && lock.owner != self;
    if (!is_inherited || !overlap(lock.range, range)) continue;
    // If this process still shares the lock with its parent, the call did not make another lock, and nothing changes.
    // Otherwise this process now has a lock of its own, so the inherited entry is dropped.
    if (kind != FileLockKind::kPosix && has_lock(fd, kind, lock.owner) && is_shared_with(lock.owner, fd)) return;
    drop(lock);
  }
  Lock* const lock = find_room(kind, fd, range, self);
  if (lock == nullptr) return;
  lock->kind = kind;
  lock->fd = fd;
  lock->owner = self;
  lock->is_exclusive = is_exclusive;
  lock->range = range;
  lock->taken_at = site.pc;
  lock->fork = 0;
  g_count.fetch_add(1, std::memory_order_relaxed);
  lock->stage.store(Stage::kSet, std::memory_order_release);
}

bool was_held_at_fork(int fd) {
  if (FORKSIGHT_LIKELY(g_count.load(std::memory_order_relaxed) == 0)) return false;
  for (const Lock& lock : g_locks) {
    if (is_set(lock) && lock.fd == fd && lock.fork != 0) return true;
  }
  return false;
}

FileUnlock empty_unlock() { return {kMaxLocks, 0, 0, kNoEvent}; }

FileUnlock look_at_file_unlock(FileLockKind kind, int fd, const FileRange& range) {
  FileUnlock unlock = empty_unlock();
  if (FORKSIGHT_LIKELY(!was_held_at_fork(fd))) return unlock;
  const KeptErrno kept;
  const std::int32_t self = sys::getpid();
  for (std::uint32_t i = 0; i < kMaxLocks; ++i) {
    Lock& lock = g_locks[i];
    if (!is_set(lock) || lock.kind != kind || lock.fd != fd || !overlap(lock.range, range)) continue;
    const bool is_inherited = lock.owner == g_parent && self == g_child && lock.fork == g_fork;
    if (lock.fork == 0 || (lock.owner != self && !is_inherited)) continue;
    FileState now{};
    if (!read_state(fd, now) || !is_same_file(lock.state, now)) continue;
    const bool found = is_inherited ? look_in_child(lock, range, now, unlock) : look_in_owner(lock, range, now, unlock);
    if (!found) continue;
    unlock.index = i;
    break;
  }
  return unlock;
}

void note_file_unlock(const FileUnlock& unlock, FileLockKind kind, int fd, const FileRange& range, const Site& site) {
  if (FORKSIGHT_LIKELY(g_count.load(std::memory_order_relaxed) == 0)) return;
  const KeptErrno kept;
  if (unlock.index < kMaxLocks && g_events.fetch_add(1, std::memory_order_relaxed) < kMaxEvents) {
    const std::uint64_t stack = append_stack(site, own_slot(), kStackBytes, false, Importance::kFinding);
    append_use(g_locks[unlock.index], unlock, stack);
  }
  for (Lock& lock : g_locks) {
    if (is_set(lock) && lock.kind == kind && lock.fd == fd && covers(range, lock.range)) drop(lock);
  }
}

}  // namespace forksight
