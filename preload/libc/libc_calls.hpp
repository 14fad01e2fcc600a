// Libc functions that take locks which fork() does not reset. While a thread is inside of such a function, its slot has
// a mark of the call. So a forked child knows which of these locks other threads may have held. The mark contains the
// place of the call, as an entry in the array of held locks does.
//   The hook removes the mark when the function returns. When an exception or a cancellation passes through the hook,
//   the hook's personality routine removes the mark. After a longjmp out of the function, the mark stays, and the lock
//   in libc stays locked. That mark is removed at the thread's next marked call from the same frame or a frame further
//   out.
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

// Marks the call. In a child in which a lost thread may hold a lock that the call needs, also records a touch. May
// wait, for a bounded time, until another thread's fork is done (--cure=quiesce-libc). Both functions preserve errno.
CallMark enter_call(LibcCall call, Frame frame);
void leave_call(const CallMark& mark);

// Called by the initialiser. Prepares --cure=quiesce-libc, if it is on (quiesce_libc.cpp).
void start_quiescing();

namespace at_fork {
struct LibcCalls {
  static void records(const Fork& fork);
  static void continues(const Fork& fork);
  static void reads(const Fork& fork);
  static void starts_any(std::uint64_t record);
};
}  // namespace at_fork

}  // namespace forksight
