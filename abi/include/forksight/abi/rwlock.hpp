// pthread_rwlock_t: sysdeps/x86/nptl/bits/struct_rwlock.h, nptl/pthread_rwlock_common.c.
#pragma once

#include "forksight/abi/glibc.hpp"

namespace forksight::abi {

struct Rwlock {
  static constexpr Versions kVersions{{2, 28}, {2, 43}};

  std::uint32_t readers;  // number of readers << 3 | the flags below
  std::uint32_t writers;
  std::uint32_t wrphase_futex;  // readers and the next writer sleep on this word
  std::uint32_t writers_futex;  // further writers sleep on this word
  std::uint32_t pad[2];
  std::int32_t cur_writer;  // tid
  std::int32_t shared;
  std::uint64_t elision;
  std::uint64_t spare;  // glibc does not write it
  // The kind of the lock. When a writer unlocks, kind 0 prefers waiting readers, and kinds 1 and 2 prefer waiting
  // writers. With kind 2, a thread that holds the lock as a reader must not lock it again as a reader.
  std::uint32_t flags;
  std::uint32_t padding;

  static constexpr std::uint32_t kWritePhase = 1;
  static constexpr std::uint32_t kWriteLocked = 2;  // a writer holds the lock, or is the next to get it
  static constexpr std::uint32_t kReadersWait = 4;  // readers sleep on `readers`, behind a waiting writer
  static constexpr unsigned kReaderShift = 3;
  static constexpr std::uint32_t kFutexUsed = 2;  // in the two futex words: threads may sleep on the word
  static constexpr std::uint32_t kHighestKind = 2;
  // The value of `flags` with which a new reader waits behind a waiting writer. With kind 1 a new reader does not wait
  // for a waiting writer.
  static constexpr std::uint32_t kReadersWaitBehindWriters = 2;

  constexpr std::uint32_t reader_count() const { return readers >> kReaderShift; }
  constexpr bool is_write_phase() const { return (readers & kWritePhase) != 0; }
  constexpr bool is_write_locked() const { return (readers & kWriteLocked) != 0; }
  // The write phase alone does not mean that the lock is taken, because the last writer does not clear it.
  constexpr bool is_taken() const { return reader_count() != 0 || is_write_locked(); }
};
static_assert(sizeof(Rwlock) == 56);

}  // namespace forksight::abi
