// Libc functions that take locks which fork() does not reset. A thread inside of one is marked in its slot, so that a
// forked child knows what other threads may have held. The mark contains the place of the call, as for locks.
//   A mark is removed when the function returns, and when an exception or a cancellation passes through it (by the
//   personality routine of the hooks). After a longjmp the mark stays, and so does the lock in libc. The mark is
//   removed at the thread's next such call from the same frame or a frame further out.
#pragma once

#include <cstdint>

#include "forksight/trace/format.hpp"
#include "guest/site.hpp"
#include "record/fork_in_progress.hpp"
#include "record/slots.hpp"

namespace forksight {

enum class LibcCall : std::uint32_t {
#define FORKSIGHT_LIBC_HOOK(name, probe, versions, locks, takes, result, parameters, arguments) name,
#define FORKSIGHT_VARIADIC_HOOK(name, probe, versions, locks, takes) name,
#include "forksight/trace/libc_calls.def"
  kCount,
};

// The function behind each hook, looked up at its first use.
extern void* g_real_calls[];
void* resolve_call(LibcCall call);
inline void* real_call(LibcCall call) {
  void* const function = g_real_calls[static_cast<std::uint32_t>(call)];
  return FORKSIGHT_LIKELY(function != nullptr) ? function : resolve_call(call);
}

struct CallMark {
  Slot* slot;  // null: the call is not marked
  std::uint32_t index;
  LibcCall call;
  std::uint64_t touch;  // ref of the kTouch record, 0: none
};

// Marks the call. In a child that may have lost one of its locks, also records the call. May wait, for a bounded time,
// until a fork is done (--cure=quiesce-libc). Both functions preserve errno.
CallMark enter_call(LibcCall call, Frame frame);
void leave_call(const CallMark& mark);

// --cure=quiesce-libc. In prepare: keeps other threads from entering such functions and waits, for a bounded time,
// until none is inside. The gate opens again after the fork, in both processes.
void start_quiescing();  // by the initialiser

namespace at_fork {
struct LibcCalls {
  static void records(const Fork& fork);
  static void continues(const Fork& fork);
  static void reads(const Fork& fork);
  static void starts_any(std::uint64_t record);
};
}  // namespace at_fork

}  // namespace forksight
