// The first 4096 bytes of a trace file (format.hpp), and the constants that are valid for the whole file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace forksight::trace {

inline constexpr std::uint64_t kMagic = 0x31'54'48'47'53'4b'52'46;  // "FRKSGHT1" in memory order
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kByteOrder = 0x01020304;
inline constexpr std::uint32_t kHeaderBytes = 4096;
inline constexpr std::uint32_t kRecordAlign = 16;
inline constexpr std::uint32_t kMaxRecordBytes = 1U << 20U;
inline constexpr std::uint64_t kMaxTraceBytes = 64ULL << 20U;
inline constexpr char kFileSuffix[] = ".fstrace";

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// --- the header -------------------------------------------------------------------------------------------------

enum class OmpPolicy : std::uint32_t { kObserve = 0, kClamp = 1, kQuiesce = 2, kRebuild = 3, kAuto = 4 };
enum class OrphanPolicy : std::uint32_t { kReport = 0, kAbort = 1, kRecover = 2 };

enum HeaderFlag : std::uint32_t { kCmdlineCut = 1U << 0U, kExeCut = 1U << 1U };

struct TraceHeader {
  std::uint64_t magic;  // stored last, with memory order release
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint32_t byte_order;
  std::uint32_t pointer_bytes;
  std::uint64_t capacity;                // size in bytes to which the file may grow
  std::atomic<std::uint64_t> allocated;  // bytes that the file system has reserved; this value only grows
  // A hint: the next record starts at this offset or later. Writers begin their search for free space at this offset.
  std::atomic<std::uint64_t> tail;
  std::atomic<std::uint64_t> dropped_records;  // records that were not written because the file had no space
  std::atomic<std::uint64_t> dropped_bytes;
  std::uint64_t realtime_ns;   // CLOCK_REALTIME when the file was created
  std::uint64_t monotonic_ns;  // CLOCK_MONOTONIC at the same time
  std::uint64_t start_ticks;   // start time of `pid`, /proc/PID/stat field 22
  std::int32_t pid;            // the process that created the file, as a pid of its own pid namespace
  std::int32_t ppid;
  std::int32_t rank;            // -1: no variable of a launcher was set
  std::int32_t world_size;      // -1: unknown
  std::uint32_t cmdline_bytes;  // length of `cmdline`, whose arguments are separated by NUL
  std::uint32_t flags;          // HeaderFlag
  char writer_version[16];
  char rank_variable[32];  // the environment variable from which `rank` comes; "" for none
  char host[64];
  OmpPolicy omp_policy;
  OrphanPolicy orphan_policy;
  std::atomic<std::uint64_t> forks;  // forks recorded so far, of all processes of this file
  std::uint32_t cures;               // one bit for each cure of cures.def that is on
  std::uint8_t libc_major;           // version of the glibc of `pid`; 0: not known
  std::uint8_t libc_minor;
  std::uint8_t libc_condition;  // layout of glibc's condition variables: abi::ConditionKind, forksight/abi/glibc.hpp
  std::uint8_t reserved;
  // ref to the latest kPythonStacks record that a kPythonAtFork refers to; 0: none. Only writers use it.
  std::atomic<std::uint64_t> python_stacks;
  char exe[1024];  // NUL-terminated
  char cmdline[2816];
};
static_assert(sizeof(TraceHeader) == kHeaderBytes);
static_assert(offsetof(TraceHeader, capacity) == 24);
static_assert(offsetof(TraceHeader, realtime_ns) == 64);
static_assert(offsetof(TraceHeader, pid) == 88);
static_assert(offsetof(TraceHeader, writer_version) == 112);
static_assert(offsetof(TraceHeader, host) == 160);
static_assert(offsetof(TraceHeader, exe) == 256);
static_assert(offsetof(TraceHeader, cmdline) == 1280);

}  // namespace forksight::trace
