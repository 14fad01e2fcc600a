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

// The address of a hook's stack frame. Only this word is kept during the real call. The site is read from the frame
// when it is needed: the saved rbp, the return address and the caller's rsp are at fixed offsets (x86-64 psABI 3.2.2).
struct Frame {
  const std::uint64_t* address;

  Site site() const { return {address[1], reinterpret_cast<std::uint64_t>(address + 2), address[0]}; }
};

// Call this after a call that gets the frame as an argument. Without a later use of the frame, the compiler could
// replace that call by a jump, and the called function would overwrite the frame.
inline void keep(Frame frame) { asm volatile("" ::"r"(frame.address) : "memory"); }

}  // namespace forksight

// Must be used in the hook itself. A function that uses its frame address gets a frame pointer.
#define FORKSIGHT_FRAME() \
  ::forksight::Frame { static_cast<const std::uint64_t*>(__builtin_frame_address(0)) }

// Defines an exported function without a conflict with libc's own declaration of it, and without a version.
#define FORKSIGHT_EXPORT_PLAIN(result, name, ...)                                                     \
  extern "C" [[gnu::visibility("default")]] result forksight_hook_##name(__VA_ARGS__) __asm__(#name); \
  result forksight_hook_##name(__VA_ARGS__)

// Like FORKSIGHT_EXPORT_PLAIN, but exports the function with the versions of its row in hooks.def.
#define FORKSIGHT_EXPORT_VERSIONED(result, name, ...) \
  __asm__(FORKSIGHT_SYMVER_##name);                   \
  FORKSIGHT_EXPORT_PLAIN(result, name, __VA_ARGS__)

// Like FORKSIGHT_EXPORT_VERSIONED, for a hook whose row in hooks.def has a prototype.
#define FORKSIGHT_EXPORT(result, name, ...)                                                            \
  static_assert(std::is_same_v<result(__VA_ARGS__), FORKSIGHT_PROTOTYPE_##name>, "hooks.def: " #name); \
  FORKSIGHT_EXPORT_VERSIONED(result, name, __VA_ARGS__)

#define FORKSIGHT_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define FORKSIGHT_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

// For the few variables that are written at every fork. The kernel copies each page that is written after a fork, in
// the parent and in the child. In .data all of these variables share one page. In .bss they would be scattered over
// several pages.
#define FORKSIGHT_WRITTEN_AT_FORK __attribute__((section(".data")))
