// The part of the trace format about functions of libc that take libc's own locks. Included by format.hpp.
#pragma once

#include <cstdint>

namespace forksight::trace {

// The numbers of the locks of libc_locks.def. A set of locks has the bit 1 << number for each lock.
enum class LibcLock : std::uint32_t {
#define FORKSIGHT_LIBC_LOCK(id, name, what) id,
#include "forksight/trace/libc_locks.def"
  kCount,
};
static_assert(static_cast<unsigned>(LibcLock::kCount) <= 64);
constexpr std::uint64_t bit_of(LibcLock lock) { return std::uint64_t{1} << static_cast<unsigned>(lock); }

// A function of libc that takes locks which fork() does not reset in the child. This record is written when another
// record first refers to it.
struct LibcCallRecord {
  std::uint64_t locks;  // the set of LibcLock that the function may take
  char name[32];        // NUL-terminated
};
static_assert(sizeof(LibcCallRecord) == 40);

enum InFlightFlag : std::uint32_t {
  kInFlightEnded = 1U << 0U,  // the call ended while the fork waited for it (kQuiesced), so its locks are free
};

// A thread was inside a libc function at the instant of the fork, and may have held the function's locks. The child
// writes this record from its copy of the parent's memory. If the fork waited for the call, the parent writes the
// record in its prepare handler.
struct InFlightRecord {
  std::uint64_t fork;    // ref to kFork
  std::uint64_t thread;  // ref to kThread; this may be the fork's forking_thread
  std::uint64_t call;    // ref to kLibcCall
  std::uint64_t stack;   // ref to kStack of the function's caller
  std::uint32_t flags;   // InFlightFlag
  std::uint32_t reserved;
};
static_assert(sizeof(InFlightRecord) == 40);

// A fork waited until libc calls of other threads had ended (--cure=quiesce-libc). Written in prepare.
struct QuiescedRecord {
  std::uint64_t fork;  // ref to kFork
  std::uint64_t waited_ns;
  std::uint32_t waited_for;  // number of threads that were inside such a call
  std::uint32_t left;        // number of these threads that were still inside when the time was up
};
static_assert(sizeof(QuiescedRecord) == 24);

// A standard stream that another thread had locked at a fork that bypassed the handlers (kForkBypassed). The child
// writes this record. fork() resets the locks of streams, so after fork() there is no such record.
struct StreamRecord {
  std::uint64_t fork;    // ref to kFork
  std::uint64_t thread;  // ref to kThread of the holder
  std::uint64_t lock;    // address of the lock's futex word
  std::int32_t number;   // 0, 1 or 2: stdin, stdout, stderr
  std::uint32_t reserved;
};
static_assert(sizeof(StreamRecord) == 32);

}  // namespace forksight::trace
