// Each thread has a slot (record/slots.hpp), with a stack of marks. A mark stands for a libc call that the thread is
// inside of. A mark is made by stores in the order depth, site, call. So a mark whose call is 0 is not complete, and is
// skipped.
#pragma once

#include "libc/libc_calls.hpp"
#include "locks/held.hpp"

namespace forksight {

// Removes the marks with this index and higher ones.
inline void drop_calls(Slot& slot, std::uint32_t from) {
  const std::uint32_t depth = slot.call_depth;
  for (std::uint32_t i = from; i < depth && i < kMaxCalls; ++i) slot.calls[i].call = 0;
  compiler_fence();
  slot.call_depth = from;
}

// Marks a call. Returns the index of the mark.
inline std::uint32_t push_call(Slot& slot, LibcCall call, Frame frame) {
  std::uint32_t depth = slot.call_depth;
  const auto sp = reinterpret_cast<std::uint64_t>(frame.address + 2);
  // Removes the marks of calls that a longjmp has left. The frame of a call that still runs is at a higher address than
  // the frame of the hook that runs now. So a mark whose frame is not at a higher address belongs to a call that was
  // left.
  while (depth > 0 && depth <= kMaxCalls && slot.calls[depth - 1].call != 0 && slot.calls[depth - 1].site.sp <= sp) {
    slot.calls[--depth].call = 0;
  }
  if (depth == 0) ++slot.call_serial;
  slot.call_depth = depth + 1;
  if (depth >= kMaxCalls) return depth;
  compiler_fence();
  store_site(slot.calls[depth].site, frame);
  compiler_fence();
  slot.calls[depth].call = static_cast<std::uint32_t>(call) + 1;
  return depth;
}

// Returns the locks that this libc function may take: a set of LibcLock.
std::uint64_t locks_of(LibcCall call);
// Returns the reference of the kLibcCall record about this libc function. Writes the record if the trace lacks it.
std::uint64_t ensure_call_record(LibcCall call);

// A libc call that was in flight at a fork. In the child, its locks may stay locked for ever.
struct LostCall {
  std::uint64_t record;  // reference of the kInFlight record; 0: this entry is free
  std::uint64_t fork;
  std::uint64_t locks;    // the locks of the call that may still be locked
  std::uint32_t touches;  // how many kTouch records about these locks were written so far
  // 1 + the index of the mark, if the forking thread itself made the call; 0: another thread made it
  std::uint32_t own_index;
  bool cured;  // the fork waited until the call had ended (--cure=quiesce-libc)
};

void remember_lost(const LostCall& lost);

// The gate of --cure=quiesce-libc is closed while a thread forks. Other threads then wait before they enter a libc
// function whose calls are marked.
bool gate_is_closed();
// Waits, for a bounded time, until the gate is open. The call's mark is removed meanwhile.
void wait_at_gate(Slot& slot, LibcCall call, Frame frame);
// Called in a child. The fork waited for some calls. This function adds these calls to the list of lost calls, and sets
// their `cured`.
void take_gate_waits_in_child(Slot* forking);

}  // namespace forksight
