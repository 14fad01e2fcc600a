#include "record/writer.hpp"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>

#include "forksight/version.hpp"
#include "guest/clock.hpp"
#include "guest/config.hpp"
#include "guest/sys.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

using trace::RecordHeader;
using trace::RecordState;
using trace::TraceHeader;

constexpr std::uint64_t kFirstBytes = 256U << 10U;
constexpr std::uint64_t kSmallestFile = 16U << 10U;  // what a full disk may still have

constinit std::byte* g_file = nullptr;
constinit std::atomic<bool> g_refused{false};
constinit std::atomic<bool> g_opening{false};
constinit char g_path[1280] = {};
// One thread at a time creates the file: what it needs for that need not be on its stack, which may be a small one.
constinit utsname g_names = {};

TraceHeader* header() { return reinterpret_cast<TraceHeader*>(g_file); }
RecordHeader* record_at(std::uint64_t offset) { return reinterpret_cast<RecordHeader*>(g_file + offset); }

// Beyond this limit the kernel would send SIGXFSZ.
std::uint64_t file_size_limit() {
  rlimit limit{};
  if (sys::call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, sys::word(&limit)) != 0) return 0;
  return limit.rlim_cur;
}

// The file system must promise the bytes before anything is stored: a store into a hole of a full one is SIGBUS.
bool promise(int fd, std::uint64_t bytes) {
  if (bytes > file_size_limit()) return false;
  long result = 0;
  do {
    result = sys::fallocate(fd, bytes);
  } while (result == -EINTR);
  return result == 0;
}

// Grows the file so that `end` bytes are promised. Any process that has the mapping may do it, two may do it at once.
bool grow(std::uint64_t end) {
  TraceHeader* const head = header();
  if (end > head->capacity) return false;
  std::uint64_t now = head->allocated.load(std::memory_order_acquire);
  std::uint64_t wanted = now;
  while (wanted < end) wanted *= 2;
  if (wanted > head->capacity) wanted = head->capacity;
  const int fd = sys::open(g_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  const bool promised = promise(fd, wanted);
  sys::close(fd);
  if (!promised) return false;
  while (now < wanted && !head->allocated.compare_exchange_weak(now, wanted, std::memory_order_acq_rel)) {
  }
  return true;
}

// Claims `size` bytes; 0 if there is no room. The chain of records is the truth, `tail` only saves walking it.
std::uint64_t claim(std::uint32_t size, trace::RecordType type, Importance importance) {
  TraceHeader* const head = header();
  const std::uint64_t room = importance == Importance::kFinding ? head->capacity : head->capacity / 4 * 3;
  const std::uint64_t word = trace::pack_word(size, type, RecordState::kWriting);
  std::uint64_t at = head->tail.load(std::memory_order_acquire);
  for (;;) {
    // The first word of the record after this one must be readable, too: it ends the chain.
    const std::uint64_t end = at + size + sizeof(RecordHeader);
    if (end > room) return 0;
    if (end > head->allocated.load(std::memory_order_acquire) && !grow(end)) return 0;
    std::uint64_t found = 0;
    if (record_at(at)->word.compare_exchange_strong(found, word, std::memory_order_acq_rel)) break;
    at += trace::word_size(found);
  }
  std::uint64_t tail = head->tail.load(std::memory_order_relaxed);
  while (tail < at + size && !head->tail.compare_exchange_weak(tail, at + size, std::memory_order_acq_rel)) {
  }
  return at;
}

std::uint64_t read_start_ticks() {
  static char text[512];  // see g_names
  const int fd = sys::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const long got = sys::read(fd, text, sizeof text - 1);
  sys::close(fd);
  if (got <= 0) return 0;
  text[got] = '\0';
  // Field 2 is the name in parentheses and may hold anything; field 3 follows the last ')'. Start time is field 22.
  const char* at = strrchr(text, ')');
  for (int field = 2; at != nullptr && field < 22; ++field) at = strchr(at + 1, ' ');
  std::uint64_t ticks = 0;
  if (at != nullptr) {
    for (++at; *at >= '0' && *at <= '9'; ++at) ticks = ticks * 10 + static_cast<std::uint64_t>(*at - '0');
  }
  return ticks;
}

void fill_identity(TraceHeader& head) {
  if (sys::call(SYS_uname, sys::word(&g_names)) == 0) memcpy(head.host, g_names.nodename, sizeof head.host - 1);
  const long exe =
      sys::call(SYS_readlinkat, AT_FDCWD, sys::word("/proc/self/exe"), sys::word(head.exe), sizeof head.exe);
  if (exe == static_cast<long>(sizeof head.exe)) head.flags |= trace::kExeCut;
  head.exe[exe < 0                                    ? 0
           : exe < static_cast<long>(sizeof head.exe) ? exe
                                                      : static_cast<long>(sizeof head.exe) - 1] = '\0';
  const int fd = sys::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    const long got = sys::read(fd, head.cmdline, sizeof head.cmdline);
    if (got > 0) head.cmdline_bytes = static_cast<std::uint32_t>(got);
    if (got == static_cast<long>(sizeof head.cmdline)) head.flags |= trace::kCmdlineCut;
    sys::close(fd);
  }
}

void fill_header(TraceHeader& head, std::uint64_t allocated) {
  head.version = trace::kVersion;
  head.header_bytes = trace::kHeaderBytes;
  head.byte_order = trace::kByteOrder;
  head.pointer_bytes = sizeof(void*);
  head.capacity = trace::kMaxTraceBytes;
  head.allocated.store(allocated, std::memory_order_relaxed);
  head.tail.store(trace::kHeaderBytes + sizeof(RecordHeader) + sizeof(trace::RecentRecord), std::memory_order_relaxed);
  head.realtime_ns = now_ns(CLOCK_REALTIME);
  head.monotonic_ns = now_ns();
  head.start_ticks = read_start_ticks();
  head.pid = sys::getpid();
  head.ppid = sys::getppid();
  head.rank = g_config.rank;
  head.world_size = g_config.world_size;
  head.omp_policy = g_config.omp;
  head.orphan_policy = g_config.on_orphan;
  head.cures = g_config.cures.bits;
  memcpy(head.rank_variable, g_config.rank_variable, sizeof head.rank_variable);
  memcpy(head.writer_version, FORKSIGHT_VERSION, sizeof(FORKSIGHT_VERSION));
  fill_identity(head);
  __atomic_store_n(&head.magic, trace::kMagic, __ATOMIC_RELEASE);
}

char* put_text(char* at, const char* text) {
  const std::size_t length = strlen(text);
  memcpy(at, text, length + 1);
  return at + length;
}

char* put_hex(char* at, std::uint64_t value) {
  for (int shift = 60; shift >= 0; shift -= 4) *at++ = "0123456789abcdef"[value >> static_cast<unsigned>(shift) & 15U];
  *at = '\0';
  return at;
}

char* put_decimal(char* at, std::uint32_t value) {
  char digits[10];
  int count = 0;
  do {
    digits[count++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (count > 0) *at++ = digits[--count];
  *at = '\0';
  return at;
}

// OUT/HOST.PID.TIME.fstrace: unique over the ranks of a job that share one folder.
void compose_path() {
  sys::call(SYS_uname, sys::word(&g_names));
  char* at = put_text(g_path, g_config.out);
  *at++ = '/';
  g_names.nodename[63] = '\0';
  at = put_text(at, g_names.nodename);
  *at++ = '.';
  at = put_decimal(at, static_cast<std::uint32_t>(sys::getpid()));
  *at++ = '.';
  at = put_hex(at, now_ns(CLOCK_REALTIME));
  put_text(at, trace::kFileSuffix);
}

bool create_file() {
  compose_path();
  const int fd = sys::open(g_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  std::uint64_t bytes = kFirstBytes;
  while (bytes >= kSmallestFile && !promise(fd, bytes)) bytes /= 2;
  void* memory = nullptr;
  if (bytes >= kSmallestFile) {
    memory = sys::map(trace::kMaxTraceBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd);
  }
  sys::close(fd);
  if (memory == nullptr) {
    sys::unlink(g_path);
    return false;
  }
  // The first record, before anybody else can write: its words are all zero as they are.
  auto* const first = reinterpret_cast<RecordHeader*>(static_cast<std::byte*>(memory) + trace::kHeaderBytes);
  first->pid = sys::getpid();
  first->tid = sys::gettid();
  first->time_ns = now_ns();
  constexpr std::uint32_t kRecentBytes = sizeof(RecordHeader) + sizeof(trace::RecentRecord);
  static_assert(kRecentBytes % trace::kRecordAlign == 0 && trace::kHeaderBytes + kRecentBytes < kSmallestFile);
  first->word.store(trace::pack_word(kRecentBytes, trace::RecordType::kRecent, RecordState::kCommitted));
  fill_header(*static_cast<TraceHeader*>(memory), bytes);
  g_file = static_cast<std::byte*>(memory);
  return true;
}

}  // namespace

bool trace_is_open() { return __atomic_load_n(&g_file, __ATOMIC_ACQUIRE) != nullptr; }

const void* record_payload(std::uint64_t reference) { return record_at(reference) + 1; }

bool open_trace() {
  if (trace_is_open()) return true;
  if (g_config.out[0] == '\0' || g_refused.load(std::memory_order_relaxed)) return false;
  // Two threads fork for the first time at once: one creates, the other goes without for this one fork.
  if (g_opening.exchange(true, std::memory_order_acquire)) return false;
  const bool opened = trace_is_open() || create_file();
  if (!opened) g_refused.store(true, std::memory_order_relaxed);
  g_opening.store(false, std::memory_order_release);
  return opened;
}

trace::RecentRecord* recent_stacks() {
  if (!trace_is_open()) return nullptr;
  return reinterpret_cast<trace::RecentRecord*>(record_at(trace::kHeaderBytes) + 1);
}

std::uint64_t next_fork_ordinal() {
  return trace_is_open() ? header()->forks.fetch_add(1, std::memory_order_relaxed) + 1 : 0;
}

std::uint64_t forks_so_far() { return trace_is_open() ? header()->forks.load(std::memory_order_relaxed) : 0; }

std::atomic<std::uint64_t>& last_python_stacks() { return header()->python_stacks; }

Record::Record(trace::RecordType type, std::size_t payload_bytes, Importance importance) : type_(type) {
  if (!trace_is_open()) return;
  constexpr std::size_t kAlign = trace::kRecordAlign;
  const std::size_t size = (sizeof(RecordHeader) + payload_bytes + kAlign - 1) / kAlign * kAlign;
  if (size <= trace::kMaxRecordBytes) offset_ = claim(static_cast<std::uint32_t>(size), type, importance);
  if (offset_ == 0) {
    header()->dropped_records.fetch_add(1, std::memory_order_relaxed);
    header()->dropped_bytes.fetch_add(size, std::memory_order_relaxed);
    return;
  }
  size_ = static_cast<std::uint32_t>(size);
  header_ = record_at(offset_);
  payload_ = reinterpret_cast<std::byte*>(header_ + 1);
  header_->pid = sys::getpid();
  header_->tid = sys::gettid();
  header_->time_ns = now_ns();
}

std::uint64_t Record::commit() {
  // Pairs with the reader's acquire load of the word: a committed record is whole.
  header_->word.store(trace::pack_word(size_, type_, RecordState::kCommitted), std::memory_order_release);
  return offset_;
}

std::uint32_t read_stack(std::uint64_t sp, void* to, const StackBound& bound) {
  const auto* from = reinterpret_cast<const void*>(sp);
  if (!bound.mapped) return static_cast<std::uint32_t>(sys::read_memory(from, to, bound.bytes));
  memcpy(to, from, bound.bytes);
  return static_cast<std::uint32_t>(bound.bytes);
}

std::uint64_t append_stack(const Site& site, const Slot* slot, std::size_t limit, bool frozen, Importance importance) {
  const StackBound bound = stack_bound(slot, site.sp, limit);
  Record record(trace::RecordType::kStack, sizeof(trace::StackRecord) + bound.bytes, importance);
  if (!record) return 0;
  auto* const stack = record.as<trace::StackRecord>();
  stack->pc = site.pc;
  stack->sp = site.sp;
  stack->fp = site.fp;
  stack->bytes = read_stack(site.sp, record.payload() + sizeof(trace::StackRecord), bound);
  stack->flags =
      (bound.cut || stack->bytes < bound.bytes ? trace::kStackCut : 0U) | (frozen ? trace::kStackFrozen : 0U);
  return record.commit();
}

std::uint64_t append_saved_stack(const Site& site, const void* bytes, std::uint32_t count, std::uint32_t flags) {
  Record record(trace::RecordType::kStack, sizeof(trace::StackRecord) + count);
  if (!record) return 0;
  *record.as<trace::StackRecord>() = {site.pc, site.sp, site.fp, count, flags};
  memcpy(record.payload() + sizeof(trace::StackRecord), bytes, count);
  return record.commit();
}

void append_note(trace::NoteCode code, std::uint64_t value) {
  append(trace::RecordType::kNote, trace::NoteRecord{code, 0, value});
}

void count_in_note(std::uint64_t& note, trace::NoteCode code) {
  if (!trace_is_open()) return;
  const std::uint64_t known = __atomic_load_n(&note, __ATOMIC_RELAXED);
  if (known == 0) {
    // Two threads at once write two notes: one too many is no harm.
    __atomic_store_n(&note, append(trace::RecordType::kNote, trace::NoteRecord{code, 0, 1}), __ATOMIC_RELAXED);
    return;
  }
  auto* const record = static_cast<trace::NoteRecord*>(const_cast<void*>(record_payload(known)));
  __atomic_fetch_add(&record->value, 1, __ATOMIC_RELAXED);
}

}  // namespace forksight
