// Handlers while they run. All of it in processes with threads only: elsewhere a trampoline is one load, one branch and
// a jump.
#pragma once

#include <cstdint>

#include "fork/atfork_list.hpp"
#include "forksight/trace/handlers.hpp"
#include "guest/site.hpp"
#include "record/slots.hpp"

namespace forksight {

// The function that stands for the handler at `place` of the list.
AtforkHandler trampoline(std::uint32_t place, trace::HandlerPhase phase);

// In the shim's prepare handler, which runs last: the fork has its record now.
void name_fork_of_run(Slot& self);
// In its child handler, which runs first: what the forking thread was at belongs to the parent. fork-child-safe.
void forget_run_in_child(Slot& self);

// A thread inside of a handler takes the slow path of every lock, and says what it waits for before it blocks.
inline bool is_in_handler(const Slot* slot) { return slot != nullptr && slot->handler_depth != 0; }
struct HandlerWait {
  std::uint64_t record;  // 0: none
};
// `object`: the lock, the condition variable, or the thread pointer of the thread to be joined. By a thread that
// is_in_handler.
HandlerWait begin_handler_wait(trace::HandlerWaitKind kind, std::uint64_t object, trace::LockKind lock_kind, bool timed,
                               const Site& site);
void end_handler_wait(const HandlerWait& wait);

}  // namespace forksight
