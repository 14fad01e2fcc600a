// struct pthread, to which pthread_self() points: nptl/descr.h. It begins with a tcbhead_t of 704 bytes. The first and
// the third word of the tcbhead_t are the address of the struct pthread itself.
#pragma once

#include "forksight/abi/glibc.hpp"

namespace forksight::abi {

inline constexpr std::size_t kSelfInThread = 16;

struct ThreadLayout {
  Versions versions;
  std::uint16_t list;             // links to the next and previous thread whose stack is of the same kind
  std::uint16_t tid;              // the thread's id in the kernel
  std::uint16_t cancel_handling;  // flags: kExitingOrTerminated, kCancelDisabled, ...
  std::uint16_t stack_owner;      // who allocated the stack
  std::uint16_t stack_owner_bytes;
  std::uint16_t stack_of_user;  // the value of stack_owner for a stack that the program allocated
  std::uint16_t start_routine;
  std::uint16_t argument;
  // True if pthread_join() waits on `tid`. The kernel clears `tid` when the thread has ended, and wakes the waiters.
  bool is_joined_by_tid;
};

inline constexpr ThreadLayout kThreadLayouts[] = {
    {{{2, 28}, {2, 35}}, 0x2c0, 0x2d0, 0x308, 0x612, 1, 1, 0x640, 0x648, true},
    // glibc 2.36 removed the member for the offset of the CPU clock. Earlier versions had the member, but did not use
    // it.
    {{{2, 36}, {2, 41}}, 0x2c0, 0x2d0, 0x308, 0x612, 1, 1, 0x638, 0x640, true},
    // In glibc 2.42 the flag that says whether the program allocated the stack became an enum.
    {{{2, 42}, {2, 42}}, 0x2c0, 0x2d0, 0x308, 0x614, 4, 2, 0x640, 0x648, true},
    // In glibc 2.43 pthread_join() waits on a separate member, not on `tid`.
    {{{2, 43}, {2, 43}}, 0x2c0, 0x2d0, 0x308, 0x614, 4, 2, 0x640, 0x648, false},
};
// Larger than every offset above, and smaller than struct pthread in every version.
inline constexpr std::size_t kThreadBytes = 0x6a0;

// Bits of `cancel_handling`: the thread is ending, or has ended.
inline constexpr std::uint32_t kExitingOrTerminated = 0x30;

// Bits of `cancel_handling`. kCancelDisabled means that the thread cannot be cancelled. kCancelAsynchronous means that
// the thread can be cancelled at any instruction. glibc 2.34 and 2.35 store these two flags elsewhere.
inline constexpr std::uint32_t kCancelDisabled = 0x1;
inline constexpr std::uint32_t kCancelAsynchronous = 0x2;
inline constexpr Versions kWithoutCancelFlags{{2, 34}, {2, 35}};

// Returns null if no layout is known for `version`.
constexpr const ThreadLayout* thread_layout(Version version) {
  for (const ThreadLayout& layout : kThreadLayouts) {
    if (layout.versions.have(version)) return &layout;
  }
  return nullptr;
}

}  // namespace forksight::abi
