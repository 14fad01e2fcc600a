// Where a hooked function was called: the three registers from which its caller can be unwound.
#pragma once

#include <cstdint>
#include <type_traits>

#include "forksight/hook_rows.hpp"

namespace forksight {

struct Site {
  std::uint64_t pc;  // return address
  std::uint64_t sp;  // the call frame address: rsp of the caller after the return
  std::uint64_t fp;  // rbp of the caller
};

// The frame of a hook, one word: what follows is read from it when it is needed, not carried over the real call.
// Saved rbp, return address and the caller's rsp lie at fixed offsets (x86-64 psABI 3.2.2).
struct Frame {
  const std::uint64_t* address;

  Site site() const { return {address[1], reinterpret_cast<std::uint64_t>(address + 2), address[0]}; }
};

// After a call that was given the frame: a compiler that knew of no use behind it would take the frame down, jump to
// the function, and let it write over the words.
inline void keep(Frame frame) { asm volatile("" ::"r"(frame.address) : "memory"); }

}  // namespace forksight

// Must be used in the hook itself; naming the frame address gives the function a frame pointer.
#define FORKSIGHT_FRAME() \
  ::forksight::Frame { static_cast<const std::uint64_t*>(__builtin_frame_address(0)) }

// Defines an exported function without colliding with libc's own declaration of it, under no version of its name.
#define FORKSIGHT_EXPORT_PLAIN(result, name, ...)                                                     \
  extern "C" [[gnu::visibility("default")]] result forksight_hook_##name(__VA_ARGS__) __asm__(#name); \
  result forksight_hook_##name(__VA_ARGS__)

// The same under the versions that its row names.
#define FORKSIGHT_EXPORT_VERSIONED(result, name, ...) \
  __asm__(FORKSIGHT_SYMVER_##name);                   \
  FORKSIGHT_EXPORT_PLAIN(result, name, __VA_ARGS__)

// The same, of a hook whose row has a prototype: hooks.def.
#define FORKSIGHT_EXPORT(result, name, ...)                                                            \
  static_assert(std::is_same_v<result(__VA_ARGS__), FORKSIGHT_PROTOTYPE_##name>, "hooks.def: " #name); \
  FORKSIGHT_EXPORT_VERSIONED(result, name, __VA_ARGS__)

#define FORKSIGHT_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define FORKSIGHT_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

// For the few variables that are written at every fork. Each page that is written after a fork is copied by the kernel,
// in the parent and in the child; in .data all of these share one page, scattered over .bss they would be several.
#define FORKSIGHT_WRITTEN_AT_FORK __attribute__((section(".data")))
