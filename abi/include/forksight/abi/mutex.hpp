// pthread_mutex_t: sysdeps/x86/nptl/bits/struct_mutex.h, nptl/pthreadP.h.
#pragma once

#include "forksight/abi/glibc.hpp"

namespace forksight::abi {

// All zero: the mutex is free.
struct Mutex {
  static constexpr Versions kVersions{{2, 28}, {2, 43}};

  std::uint32_t lock;  // of a normal mutex: 0 free, 1 held, 2 held and waited for. Other kinds: is_held()
  std::uint32_t count;
  std::int32_t owner;
  std::uint32_t users;
  std::uint32_t kind;
  std::uint32_t spins;
  std::uint64_t list_previous;  // robust mutexes only: links in the owner's list of held mutexes
  std::uint64_t list_next;

  // Bits of `kind`. Above them are bits that lock elision sets at the first use.
  static constexpr std::uint32_t kTypeBits = 3;
  static constexpr std::uint32_t kRobust = 0x10;
  static constexpr std::uint32_t kPriorityInherit = 0x20;
  static constexpr std::uint32_t kPriorityProtect = 0x40;
  static constexpr std::uint32_t kShared = 0x80;
  static constexpr std::uint32_t kAttributes = 0xff;
  static constexpr std::uint32_t kElision = 0x300;

  // Bits of `lock`. In robust and priority-inheriting mutexes, `lock` contains the owner's tid, with the kernel's bits
  // above the tid. In mutexes with priority protection, `lock` contains the ceiling, even while the mutex is free.
  static constexpr std::uint32_t kTidBits = 0x3fff'ffff;
  static constexpr std::uint32_t kCeilingBits = 0xfff8'0000;
  static constexpr std::uint32_t kContended = 2;

  // The value of `owner` in a robust mutex whose previous holder ended, until the new holder calls
  // pthread_mutex_consistent(): PTHREAD_MUTEX_INCONSISTENT of nptl/pthreadP.h.
  static constexpr std::int32_t kInconsistent = 0x7fff'ffff;

  enum class Type : std::uint32_t { kNormal = 0, kRecursive = 1, kErrorcheck = 2, kAdaptive = 3 };

  constexpr Type type() const { return static_cast<Type>(kind & kTypeBits); }
  constexpr bool is_robust() const { return (kind & kRobust) != 0; }
  constexpr bool is_pi() const { return (kind & kPriorityInherit) != 0; }
  constexpr bool has_ceiling() const { return (kind & kPriorityProtect) != 0; }
  // pthread_mutex_init() sets this bit for every robust mutex, so the result means nothing for robust mutexes.
  constexpr bool is_shared() const { return (kind & kShared) != 0; }
  constexpr bool has_tid_in_lock() const { return is_robust() || is_pi(); }
  // True if pthread_mutex_unlock(), and pthread_mutex_lock() of a held mutex, compare the tid of the caller with the
  // tid of the owner. For a mutex with priority protection the result depends on the type of the mutex, as for an
  // ordinary mutex.
  constexpr bool checks_owner() const {
    return type() == Type::kRecursive || type() == Type::kErrorcheck || has_tid_in_lock();
  }

  // A robust mutex whose holder has ended is free for the next thread: the kernel has cleared the tid, and set a bit.
  constexpr bool is_held() const {
    if (has_tid_in_lock()) return (lock & kTidBits) != 0;
    return (has_ceiling() ? lock & ~kCeilingBits : lock) != 0;
  }
  // The tid of the holder. It is 0 for a few instructions after the holder takes the lock, except for kinds that have
  // the tid in `lock`. In these kinds, `owner` may be kInconsistent, or may not yet have the value that `lock` has.
  constexpr std::int32_t holder() const {
    if (!is_held()) return 0;
    return has_tid_in_lock() ? static_cast<std::int32_t>(lock & kTidBits) : owner;
  }
};
static_assert(sizeof(Mutex) == 40);

}  // namespace forksight::abi
