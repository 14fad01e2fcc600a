#include "record/trace_file.hpp"

#include <errno.h>
#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <iterator>

#include "guest/busy_flag.hpp"
#include "guest/clock.hpp"
#include "guest/config.hpp"
#include "guest/proc_lines.hpp"
#include "guest/site.hpp"
#include "guest/sys.hpp"
#include "record/trace_header.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

using trace::RecordHeader;
using trace::RecordState;
using trace::TraceHeader;

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kFirstBytes = 256U << 10U;
constexpr std::uint64_t kSmallestFile = 16U << 10U;  // a full disk may still have this much
// The size of the file if the file system cannot reserve space: such a file has holes, and does not grow.
constexpr std::uint64_t kSparseBytes = 8U << 20U;
constexpr std::uint32_t kMostSteps = 1U << 16U;  // of one search for a free place along the chain of records
constexpr int kMostTries = 16;                   // of one attempt to raise a word that processes share
constexpr std::uint64_t kFirstRecord = trace::kHeaderBytes;
constexpr std::uint32_t kRecentBytes = sizeof(RecordHeader) + sizeof(trace::RecentRecord);
static_assert(kRecentBytes % trace::kRecordAlign == 0 && kFirstRecord + kRecentBytes < kSmallestFile);

// The views of the file. Each is a mapping from the start of the file, made when it is needed, and is never unmapped.
constexpr std::uint64_t kViewBytes[] = {1U << 20U, 8U << 20U, trace::kMaxTraceBytes};
constinit std::byte* g_views[std::size(kViewBytes)] = {};
static_assert(kViewBytes[0] >= kFirstBytes && kViewBytes[1] >= kSparseBytes);

// The number of bytes that the file system has reserved, as far as this process knows. The value in the header is not
// used, because other processes can change it.
constinit std::atomic<std::uint64_t> g_reserved{0};
// Where this process begins to search for a free place: at the end of the chain of records, or at an earlier record.
FORKSIGHT_WRITTEN_AT_FORK constinit std::atomic<std::uint64_t> g_tail{0};
constinit std::atomic<bool> g_is_spoiled{false};
constinit std::atomic<bool> g_refused{false};
constinit BusyFlag g_opening;
constinit bool g_is_sparse = false;
constinit bool g_is_limited = false;  // the program limits its address space, so only the first view is mapped
constinit char g_path[kTracePathBytes] = {};
constinit std::uint64_t g_device = 0;
constinit std::uint64_t g_inode = 0;

std::byte* view(std::size_t level) { return __atomic_load_n(&g_views[level], __ATOMIC_ACQUIRE); }
TraceHeader* header() { return reinterpret_cast<TraceHeader*>(view(0)); }

std::uint64_t limit_of(int resource) {
  rlimit limit{};
  if (sys::call(SYS_prlimit64, 0, resource, 0, sys::word(&limit)) != 0) return 0;
  return limit.rlim_cur;
}

// True if the program locks its memory. Then the kernel may lock a new mapping of the shim, too, and that would count
// against the program's limit.
bool locks_its_memory() {
  bool locks = false;
  for_each_line("/proc/thread-self/status", [&locks](const char* line) {
    const char* text = after(line, "VmLck:");
    if (text == nullptr) return true;
    while (*text == ' ' || *text == '\t') ++text;
    locks = read_number(text) != 0;
    return false;
  });
  return locks;
}

// Maps a further view. This needs neither the file's name nor a descriptor: mremap() with an old size of 0 duplicates a
// shared mapping.
std::byte* map_view(std::size_t level) {
  if (g_is_limited || locks_its_memory()) return nullptr;
  constexpr long kMayMove = 1;  // MREMAP_MAYMOVE
  const long made = sys::call(SYS_mremap, sys::word(view(0)), 0, static_cast<long>(kViewBytes[level]), kMayMove);
  if (made < 0 && made > -4096) return nullptr;
  auto* const memory = reinterpret_cast<std::byte*>(made);
  std::byte* none = nullptr;
  if (__atomic_compare_exchange_n(&g_views[level], &none, memory, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    return memory;
  }
  sys::unmap(memory, kViewBytes[level]);
  return none;
}

// A view of the file in which the first `end` bytes are mapped; null if there is none. `may_map`: the function may map
// a new view.
std::byte* bytes_up_to(std::uint64_t end, bool may_map) {
  for (std::size_t level = 0; level < std::size(kViewBytes); ++level) {
    if (end > kViewBytes[level]) continue;
    std::byte* const known = view(level);
    return known != nullptr || !may_map ? known : map_view(level);
  }
  return nullptr;
}

// Lets the kernel write to the first word of each page. Where a store would cause SIGBUS, the kernel returns an error.
// The kernel combines the word with 0 by an atomic OR, so the word keeps its value.
bool touch_pages(std::byte* base, std::uint64_t from, std::uint64_t to) {
  static std::uint32_t nobody_waits = 0;
  constexpr long kOrZero = FUTEX_OP_OR << 28U;
  for (std::uint64_t at = from / kPage * kPage; at < to; at += kPage) {
    const long result = sys::call(SYS_futex, sys::word(&nobody_waits), FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 1, 0,
                                  sys::word(base + at), kOrZero);
    if (result < 0) return false;
  }
  return true;
}

bool has_no_space(long error) { return error == -ENOSPC || error == -EDQUOT || error == -EFBIG || error == -EIO; }

long allocate(int fd, std::uint64_t bytes) {
  // Beyond this limit the kernel would send SIGXFSZ.
  if (bytes > limit_of(RLIMIT_FSIZE)) return -EFBIG;
  long result = 0;
  do {
    result = sys::fallocate(fd, bytes);
  } while (result == -EINTR);
  return result;
}

// True if the file at this descriptor is the trace. False: another file has the name of the trace by now.
bool is_trace(int fd) {
  struct stat status {};
  return sys::call(SYS_fstat, fd, sys::word(&status)) == 0 && status.st_dev == g_device && status.st_ino == g_inode;
}

// Makes the file system reserve the first `wanted` bytes before anything is stored there: on a full file system, a
// store into a hole causes SIGBUS. Several processes with the mapping may do this at the same time.
bool reserve(std::uint64_t known, std::uint64_t wanted) {
  if (g_is_sparse) {
    std::byte* const base = bytes_up_to(wanted, true);
    return wanted <= kSparseBytes && base != nullptr && touch_pages(base, known, wanted);
  }
  const int fd = sys::open(g_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  const bool reserved = is_trace(fd) && allocate(fd, wanted) == 0;
  sys::close(fd);
  return reserved;
}

// Raises a word to `value`. The number of attempts is limited, because other processes may lower the word again and
// again.
void move_forward(std::atomic<std::uint64_t>& word, std::uint64_t value) {
  std::uint64_t now = word.load(std::memory_order_relaxed);
  for (int i = 0; i < kMostTries && now < value; ++i) {
    if (word.compare_exchange_weak(now, value, std::memory_order_acq_rel)) return;
  }
}

bool grow(std::uint64_t end) {
  if (end > trace::kMaxTraceBytes || bytes_up_to(end, true) == nullptr) return false;
  const std::uint64_t known = g_reserved.load(std::memory_order_acquire);
  std::uint64_t wanted = known;
  while (wanted < end) wanted *= 2;
  if (wanted > trace::kMaxTraceBytes) wanted = trace::kMaxTraceBytes;
  if (!reserve(known, wanted)) return false;
  move_forward(g_reserved, wanted);
  move_forward(header()->allocated, wanted);
  return true;
}

bool is_reserved(std::uint64_t end) { return end <= g_reserved.load(std::memory_order_acquire) || grow(end); }

// False for a first word that no correct writer stores. Such a word ends every search along the chain of records.
bool is_record(std::uint64_t word) {
  const std::uint32_t size = trace::word_size(word);
  return size >= sizeof(RecordHeader) && size % trace::kRecordAlign == 0 && size <= trace::kMaxRecordBytes;
}

// The place where the search along the chain of records begins. The word in the header only saves steps. Other
// processes may have changed it, so it is used only if a record could be there.
std::uint64_t first_look() {
  const std::uint64_t own = g_tail.load(std::memory_order_acquire);
  const std::uint64_t shared = header()->tail.load(std::memory_order_acquire);
  return shared > own && shared % trace::kRecordAlign == 0 && shared < trace::kMaxTraceBytes ? shared : own;
}

Claim claim(std::uint32_t size, trace::RecordType type, Importance importance) {
  const std::uint64_t room = importance == Importance::kFinding ? trace::kMaxTraceBytes : trace::kMaxTraceBytes / 4 * 3;
  const std::uint64_t word = trace::pack_word(size, type, RecordState::kWriting);
  std::uint64_t at = first_look();
  for (std::uint32_t step = 0; step < kMostSteps; ++step) {
    // The first word of the record after this one must be readable, too, because it ends the chain.
    const std::uint64_t end = at + size + sizeof(RecordHeader);
    if (end > room) return {0, nullptr};
    if (!is_reserved(end)) return {0, nullptr};
    std::byte* const base = bytes_up_to(end, true);
    if (base == nullptr) return {0, nullptr};
    auto* const record = reinterpret_cast<RecordHeader*>(base + at);
    std::uint64_t found = 0;
    if (record->word.compare_exchange_strong(found, word, std::memory_order_acq_rel)) {
      move_forward(g_tail, at + size);
      move_forward(header()->tail, at + size);
      return {at, record};
    }
    if (!is_record(found)) {
      g_is_spoiled.store(true, std::memory_order_relaxed);
      return {0, nullptr};
    }
    at += trace::word_size(found);
  }
  move_forward(g_tail, at);
  return {0, nullptr};
}

struct Created {
  std::byte* memory;
  std::uint64_t bytes;  // how many bytes of the file are reserved
};

// Reserves space in the new file, and maps it. If the file system cannot reserve space, the file has holes, and the
// kernel writes to the pages that will be used first.
Created make_file(int fd) {
  std::uint64_t bytes = kFirstBytes;
  long error = allocate(fd, bytes);
  while (has_no_space(error) && bytes > kSmallestFile) error = allocate(fd, bytes /= 2);
  if (has_no_space(error)) return {};
  g_is_sparse = error != 0;
  if (g_is_sparse) {
    const std::uint64_t limit = limit_of(RLIMIT_FSIZE);
    const std::uint64_t size = limit < kSparseBytes ? limit / kPage * kPage : kSparseBytes;
    if (size < bytes || sys::call(SYS_ftruncate, fd, static_cast<long>(size)) != 0) return {};
  }
  g_is_limited = limit_of(RLIMIT_AS) != RLIM_INFINITY;
  auto* const memory =
      static_cast<std::byte*>(sys::map(kViewBytes[0], PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd));
  if (memory == nullptr) return {};
  while (g_is_sparse && !touch_pages(memory, 0, bytes)) {
    if (bytes > kSmallestFile) {
      bytes /= 2;
      continue;
    }
    sys::unmap(memory, kViewBytes[0]);
    return {};
  }
  return {memory, bytes};
}

bool create_file() {
  compose_trace_path(g_path);
  const int fd = sys::open(g_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  struct stat status {};
  const bool is_known = sys::call(SYS_fstat, fd, sys::word(&status)) == 0;
  g_device = status.st_dev;
  g_inode = status.st_ino;
  const Created created = is_known ? make_file(fd) : Created{};
  sys::close(fd);
  if (created.memory == nullptr) {
    sys::unlink(g_path);
    return false;
  }
  // No other process has this file yet, so the words are still zero.
  auto* const first = reinterpret_cast<RecordHeader*>(created.memory + kFirstRecord);
  first->pid = sys::getpid();
  first->tid = sys::gettid();
  first->time_ns = now_ns();
  first->word.store(trace::pack_word(kRecentBytes, trace::RecordType::kRecent, RecordState::kCommitted));
  fill_trace_header(*reinterpret_cast<TraceHeader*>(created.memory), created.bytes, kFirstRecord + kRecentBytes);
  g_reserved.store(created.bytes, std::memory_order_relaxed);
  g_tail.store(kFirstRecord + kRecentBytes, std::memory_order_relaxed);
  __atomic_store_n(&g_views[0], created.memory, __ATOMIC_RELEASE);
  return true;
}

}  // namespace

bool trace_is_open() { return view(0) != nullptr; }

bool open_trace() {
  if (trace_is_open()) return true;
  if (g_config.out[0] == '\0' || g_refused.load(std::memory_order_relaxed)) return false;
  // If two threads make the first forks of the process at the same time, one of them creates the file. The fork of the
  // other thread is not recorded.
  if (!g_opening.take()) return false;
  const bool opened = trace_is_open() || create_file();
  if (!opened) g_refused.store(true, std::memory_order_relaxed);
  g_opening.give_back();
  return opened;
}

void reserve_trace_room() {
  if (trace_is_open() && !g_is_sparse) (void)is_reserved(kViewBytes[0]);
}

Claim claim_record(std::uint32_t size, trace::RecordType type, Importance importance) {
  // Records that are lost because the file is spoiled are not counted: every reader of the chain finds the wrong word,
  // and so learns that records are lost.
  if (!trace_is_open() || g_is_spoiled.load(std::memory_order_relaxed)) return {0, nullptr};
  const Claim claimed = claim(size, type, importance);
  if (claimed.header == nullptr && !g_is_spoiled.load(std::memory_order_relaxed)) count_dropped(size);
  return claimed;
}

void count_dropped(std::uint64_t bytes) {
  header()->dropped_records.fetch_add(1, std::memory_order_relaxed);
  header()->dropped_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

FoundBytes find_bytes(std::uint64_t reference, trace::RecordType type) {
  const bool is_place = reference >= kFirstRecord && reference % trace::kRecordAlign == 0 &&
                        reference < trace::kMaxTraceBytes - sizeof(RecordHeader);
  if (!trace_is_open() || !is_place) return {nullptr, 0};
  // Another process may have made the file longer.
  if (!is_reserved(reference + sizeof(RecordHeader))) return {nullptr, 0};
  const std::byte* const head = bytes_up_to(reference + sizeof(RecordHeader), true);
  if (head == nullptr) return {nullptr, 0};
  const std::uint64_t word =
      reinterpret_cast<const RecordHeader*>(head + reference)->word.load(std::memory_order_acquire);
  const std::uint64_t size = trace::word_size(word);
  const bool is_whole =
      is_record(word) && trace::word_type(word) == type && trace::word_state(word) == RecordState::kCommitted;
  if (!is_whole || !is_reserved(reference + size)) return {nullptr, 0};
  std::byte* const base = bytes_up_to(reference + size, true);
  if (base == nullptr) return {nullptr, 0};
  return {base + reference + sizeof(RecordHeader), static_cast<std::size_t>(size - sizeof(RecordHeader))};
}

trace::RecentRecord* recent_stacks() {
  if (!trace_is_open()) return nullptr;
  return reinterpret_cast<trace::RecentRecord*>(view(0) + kFirstRecord + sizeof(RecordHeader));
}

std::uint64_t next_fork_ordinal() {
  return trace_is_open() ? header()->forks.fetch_add(1, std::memory_order_relaxed) + 1 : 0;
}

std::uint64_t forks_so_far() { return trace_is_open() ? header()->forks.load(std::memory_order_relaxed) : 0; }

std::atomic<std::uint64_t>& last_python_stacks() { return header()->python_stacks; }

}  // namespace forksight
