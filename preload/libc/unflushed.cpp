#include "libc/unflushed.hpp"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <atomic>

#include "guest/busy_flag.hpp"
#include "guest/kept_errno.hpp"
#include "guest/memory.hpp"
#include "guest/sys.hpp"
#include "record/slots.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

// libc's list of all streams (libio/stdfiles.c), exported since GLIBC_2.2.5.
extern "C" __attribute__((weak)) FILE* _IO_list_all;

namespace forksight {

FORKSIGHT_WRITTEN_AT_FORK constinit std::uint32_t g_unflushed_count = 0;

namespace {

constexpr std::uint32_t kMaxListed = 256;
constexpr std::uint32_t kMaxRecordedForks = 64;
constexpr std::uint32_t kTextBytes = sizeof(trace::UnflushedRecord::text);
constexpr std::size_t kStackBytes = 4U << 10U;
constexpr int kErrorSeen = 0x20;  // _IO_ERR_SEEN of glibc

struct File {
  std::uint64_t device;
  std::uint64_t inode;
};

// kNew: recorded at the fork that is in progress. kReported: a record says what became of the bytes.
enum class Stage : std::uint32_t { kFree, kNew, kWatched, kReported };

struct Kept {
  std::atomic<Stage> stage;
  int fd;
  const FILE* stream;
  const char* base;
  std::uint64_t bytes;
  std::uint64_t record;
  File file;
  char text[kTextBytes];
  std::uint32_t text_bytes;
};

// The process that the table belongs to. A child whose fork the shim did not see inherits the table, but the entries
// are not valid in that child.
FORKSIGHT_WRITTEN_AT_FORK constinit std::int32_t g_owner = 0;
FORKSIGHT_WRITTEN_AT_FORK constinit std::int32_t g_made = 0;      // pid of this process, if the shim recorded its fork
FORKSIGHT_WRITTEN_AT_FORK constinit std::uint64_t g_made_by = 0;  // ref of the record of that fork
FORKSIGHT_WRITTEN_AT_FORK constinit bool g_is_recorded = false;
FORKSIGHT_WRITTEN_AT_FORK constinit std::uint64_t g_recorded_fork = 0;
FORKSIGHT_WRITTEN_AT_FORK constinit std::uint32_t g_recorded_forks = 0;
FORKSIGHT_WRITTEN_AT_FORK constinit BusyFlag g_recording;
constinit Kept g_unflushed[kMaxUnflushed] = {};

std::uint64_t pending_bytes(const FILE& file) {
  // A wide stream converts its characters to bytes only when it is flushed.
  if (file._mode > 0 || file._fileno < 0 || (file._flags & kErrorSeen) != 0) return 0;
  return file._IO_write_ptr > file._IO_write_base ? static_cast<std::uint64_t>(file._IO_write_ptr - file._IO_write_base)
                                                  : 0;
}

// Sets `out` to the file that the descriptor refers to. False for a descriptor that is closed, and for /dev/null, whose
// output nobody reads.
__attribute__((noinline)) bool find_file(int fd, File& out) {
  struct stat status {};
  if (sys::call(SYS_fstat, fd, sys::word(&status)) != 0) return false;
  if (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3)) return false;
  out = {status.st_dev, status.st_ino};
  return true;
}

bool is_same_file(int fd, const File& file) {
  File now{};
  return find_file(fd, now) && now.device == file.device && now.inode == file.inode;
}

// Another thread may close the stream during the copy. Then the memory of the stream may be unmapped, and a read by
// this code would fault. So the kernel makes the copy: at unmapped memory it stops, and copies fewer bytes.
bool read_bytes(const void* from, void* to, std::size_t bytes) { return read_memory(from, to, bytes) == bytes; }

bool read_stream(const FILE* stream, FILE& out) { return stream != nullptr && read_bytes(stream, &out, sizeof out); }

const FILE* first_stream() { return &_IO_list_all == nullptr ? nullptr : _IO_list_all; }

__attribute__((noinline)) bool is_listed(const FILE* stream) {
  const FILE* at = first_stream();
  for (std::uint32_t i = 0; i < kMaxListed && at != nullptr; ++i) {
    if (at == stream) return true;
    const FILE* next = nullptr;
    if (!read_bytes(&at->_chain, &next, sizeof next)) break;
    at = next;
  }
  return false;
}

// True if the bytes are still at the same place in the stream, perhaps followed by others.
bool begins_with(const FILE& now, const Kept& entry) {
  char text[kTextBytes];
  if (now._IO_write_base != entry.base || pending_bytes(now) < entry.bytes) return false;
  return read_bytes(entry.base, text, entry.text_bytes) && memcmp(text, entry.text, entry.text_bytes) == 0;
}

__attribute__((noinline)) bool is_still_there(const Kept& entry) {
  FILE now;
  return read_stream(entry.stream, now) && begins_with(now, entry);
}

// True if the stream is open, and its output goes to the same file as at the fork.
__attribute__((noinline)) bool is_still_open(const Kept& entry) {
  FILE now;
  if (!is_listed(entry.stream) || !read_stream(entry.stream, now)) return false;
  return now._fileno == entry.fd && (now._flags & kErrorSeen) == 0 && is_same_file(entry.fd, entry.file);
}

bool is_watched(const Kept& entry) {
  return entry.stage.load(std::memory_order_acquire) == Stage::kWatched && g_owner == sys::getpid();
}

// Records, once for each entry, that this process has written the bytes, or is about to write them.
void report(Kept& entry, trace::FlushKind kind, const Site& site) {
  Stage expected = Stage::kWatched;
  if (!entry.stage.compare_exchange_strong(expected, Stage::kReported, std::memory_order_acq_rel)) return;
  __atomic_fetch_sub(&g_unflushed_count, 1, __ATOMIC_RELAXED);
  const std::uint64_t stack = append_stack(site, t_slot, kStackBytes, false, Importance::kFinding);
  const std::uint64_t made_by = g_made == sys::getpid() ? g_made_by : 0;
  append(trace::RecordType::kFlush, trace::FlushRecord{entry.record, made_by, stack, kind, 0}, Importance::kFinding);
}

void drop(Kept& entry) {
  const Stage before = entry.stage.exchange(Stage::kFree, std::memory_order_acq_rel);
  if (before == Stage::kWatched || before == Stage::kNew) __atomic_fetch_sub(&g_unflushed_count, 1, __ATOMIC_RELAXED);
}

// Examines the entries of earlier forks. An entry is kept only if this process watches it and its bytes are still in
// the stream. All other entries are dropped. If the bytes of a watched entry are no longer there and its stream is
// still open, the stream has written them. Then this function records the write before it drops the entry.
void review_entries() {
  const bool is_own = g_owner == sys::getpid();
  for (Kept& entry : g_unflushed) {
    const Stage stage = entry.stage.load(std::memory_order_acquire);
    if (stage == Stage::kFree) continue;
    if (stage == Stage::kWatched && is_own) {
      if (is_still_there(entry)) continue;
      if (is_still_open(entry)) report(entry, trace::FlushKind::kGone, FORKSIGHT_FRAME().site());
    }
    drop(entry);
  }
}

int number_of(const FILE* stream) { return stream == stdin ? 0 : stream == stdout ? 1 : stream == stderr ? 2 : -1; }

__attribute__((noinline)) std::uint64_t append_entry(const Kept& entry, std::uint64_t fork) {
  trace::UnflushedRecord record{fork,
                                reinterpret_cast<std::uint64_t>(entry.stream),
                                entry.bytes,
                                entry.fd,
                                number_of(entry.stream),
                                entry.text_bytes,
                                0,
                                {}};
  memcpy(record.text, entry.text, entry.text_bytes);
  return append(trace::RecordType::kUnflushed, record, Importance::kFinding);
}

Kept* find_free() {
  for (Kept& entry : g_unflushed) {
    if (entry.stage.load(std::memory_order_relaxed) == Stage::kFree) return &entry;
  }
  return nullptr;
}

bool is_known(const FILE* stream) {
  for (const Kept& entry : g_unflushed) {
    if (entry.stream == stream && entry.stage.load(std::memory_order_relaxed) != Stage::kFree) return true;
  }
  return false;
}

// If `stream` has unwritten bytes, makes an entry and a record for it. Returns the next stream in the list; null at the
// end of the list, and if there is no room for the entry or the record.
__attribute__((noinline)) const FILE* enter_stream(const FILE* stream, std::uint64_t fork) {
  FILE now;
  if (!read_stream(stream, now)) return nullptr;
  const std::uint64_t bytes = pending_bytes(now);
  if (bytes == 0 || is_known(stream)) return now._chain;
  Kept* const entry = find_free();
  if (entry == nullptr) return nullptr;
  entry->fd = now._fileno;
  entry->stream = stream;
  entry->base = now._IO_write_base;
  entry->bytes = bytes;
  entry->text_bytes = bytes < kTextBytes ? static_cast<std::uint32_t>(bytes) : kTextBytes;
  if (!find_file(entry->fd, entry->file)) return now._chain;
  if (!read_bytes(entry->base, entry->text, entry->text_bytes)) return now._chain;
  entry->record = append_entry(*entry, fork);
  if (entry->record == 0) return nullptr;
  entry->stage.store(Stage::kNew, std::memory_order_release);
  __atomic_fetch_add(&g_unflushed_count, 1, __ATOMIC_RELAXED);
  return now._chain;
}

}  // namespace

// True if a stream has unwritten bytes. Only the first forks of a process are recorded, because a server may fork for
// ever. This function is called only in a process with one thread, so no other thread changes the streams meanwhile.
bool at_fork::Unflushed::tells() {
  if (g_recorded_forks >= kMaxRecordedForks) return false;
  const FILE* at = first_stream();
  File file{};
  for (std::uint32_t i = 0; i < kMaxListed && at != nullptr; ++i, at = at->_chain) {
    if (pending_bytes(*at) != 0 && find_file(at->_fileno, file)) return true;
  }
  return false;
}

void at_fork::Unflushed::records(const Fork& fork_now) {
  const std::uint64_t fork = fork_now.record;
  // If two threads fork at the same time, only one of them records the streams.
  if (fork == 0 || !g_recording.take()) return;
  review_entries();
  const FILE* at = first_stream();
  for (std::uint32_t i = 0; i < kMaxListed && at != nullptr; ++i) at = enter_stream(at, fork);
  if (g_unflushed_count != 0) {
    g_owner = sys::getpid();
    g_recorded_fork = fork;
    g_is_recorded = true;
    if (g_recorded_forks < kMaxRecordedForks) ++g_recorded_forks;
  }
  g_recording.give_back();
}

void at_fork::Unflushed::continues(const Fork&) {
  if (FORKSIGHT_LIKELY(g_unflushed_count == 0)) return;
  g_is_recorded = false;
  for (Kept& entry : g_unflushed) {
    Stage expected = Stage::kNew;
    entry.stage.compare_exchange_strong(expected, Stage::kWatched, std::memory_order_acq_rel);
  }
}

// If this fork has no record of unwritten bytes, its child keeps no entries.
void at_fork::Unflushed::starts(const Fork& fork_now) {
  const std::uint64_t fork = fork_now.record;
  g_made = sys::getpid();
  g_made_by = fork;
  if (FORKSIGHT_LIKELY(g_unflushed_count == 0)) return;
  g_is_recorded = false;
  const bool is_current = fork != 0 && fork == g_recorded_fork;
  for (Kept& entry : g_unflushed) {
    const Stage stage = entry.stage.load(std::memory_order_relaxed);
    if (is_current && (stage == Stage::kNew || stage == Stage::kWatched) && is_listed(entry.stream) &&
        is_still_there(entry)) {
      entry.stage.store(Stage::kWatched, std::memory_order_relaxed);
    } else {
      drop(entry);
    }
  }
  g_owner = g_made;
}

FlushMarks find_unflushed(const FILE* stream) {
  const KeptErrno kept;
  FlushMarks marks{};
  for (std::uint32_t i = 0; i < kMaxUnflushed; ++i) {
    const Kept& entry = g_unflushed[i];
    const bool is_meant = stream == nullptr || entry.stream == stream;
    if (is_meant && is_watched(entry) && is_still_open(entry)) marks.records[i] = entry.record;
  }
  return marks;
}

void note_flushes(const FlushMarks& marks, trace::FlushKind kind, const Site& site) {
  const KeptErrno kept;
  for (std::uint32_t i = 0; i < kMaxUnflushed; ++i) {
    if (marks.records[i] != 0 && marks.records[i] == g_unflushed[i].record) report(g_unflushed[i], kind, site);
  }
}

void note_purge(const FILE* stream, const Site& site) {
  const KeptErrno kept;
  for (Kept& entry : g_unflushed) {
    if (entry.stream != stream || !is_watched(entry)) continue;
    if (is_still_there(entry)) {
      drop(entry);
    } else if (is_still_open(entry)) {
      report(entry, trace::FlushKind::kGone, site);
    }
  }
}

namespace {

__attribute__((noinline)) void note_exit(const Site& site) {
  for (Kept& entry : g_unflushed) {
    if (!is_watched(entry) || !is_still_open(entry)) continue;
    report(entry, is_still_there(entry) ? trace::FlushKind::kAtExit : trace::FlushKind::kGone, site);
  }
}

}  // namespace

}  // namespace forksight

// exit() calls this after the atexit handlers and before it flushes all streams. _exit() and exec do not call it.
__attribute__((destructor)) static void forksight_destructor() {
  if (FORKSIGHT_UNLIKELY(forksight::g_unflushed_count != 0)) forksight::note_exit(FORKSIGHT_FRAME().site());
}
