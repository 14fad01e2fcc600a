// Notes in a thread's slot what the thread waits for. A fork records this wait for each thread that the child loses.
#pragma once

#include "loader/next.hpp"
#include "locks/handler_wait.hpp"
#include "locks/held.hpp"
#include "locks/lock_events.hpp"
#include "record/slots.hpp"

namespace forksight {

// The wait that a thread is in. This object is on the thread's stack.
struct NotedWait {
  Slot* slot;
  // The mutex that is released during the wait; null: there is none, or the held array did not have it.
  pthread_mutex_t* mutex;
  Frame frame;
  // What the thread waited for before this wait: the wait may be in a signal handler that interrupted another wait.
  trace::WaitKind outer_kind;
  std::uint64_t outer_object;
  Site outer_site;
  _pthread_cleanup_buffer buffer;
};

// Called after the wait. Removes the wait from the slot. If the wait was in a signal handler, the slot shows the
// interrupted wait again. Pushes the mutex that was released for the wait onto the held array. The thread holds this
// mutex again, whatever the result of the wait is, and also after a cancellation.
inline void leave_wait(NotedWait& wait) {
  wait.slot->wait_kind = trace::WaitKind::kNone;
  compiler_fence();
  if (FORKSIGHT_UNLIKELY(wait.outer_kind != trace::WaitKind::kNone)) {
    wait.slot->wait_object = wait.outer_object;
    wait.slot->wait_site = wait.outer_site;
    compiler_fence();
    wait.slot->wait_kind = wait.outer_kind;
  }
  if (wait.mutex == nullptr) return;
  push_held(wait.slot, tag_lock(wait.mutex, trace::LockKind::kMutex), wait.frame);
  // At the end of the wait, the thread took the mutex again. If it held other locks at that moment, this acquisition is
  // an order of locks, too.
  if (locks_are_observed()) lock_acquired(wait.slot, wait.mutex, trace::LockKind::kMutex, true);
}
inline void leave_cancelled_wait(void* wait) { leave_wait(*static_cast<NotedWait*>(wait)); }

// Calls `wait`, which may be a cancellation point, and returns its result. Meanwhile the slot shows what the thread
// waits for.
template <class Wait>
__attribute__((always_inline)) inline int note_wait(Slot* slot, trace::WaitKind kind, std::uint64_t object, Frame frame,
                                                    pthread_mutex_t* mutex, Wait wait) {
  HandlerWait in_handler{0};
  const bool is_told = kind == trace::WaitKind::kJoin || kind == trace::WaitKind::kCondition;
  if (is_told && FORKSIGHT_UNLIKELY(is_in_handler(slot))) {
    const auto what =
        kind == trace::WaitKind::kJoin ? trace::HandlerWaitKind::kJoin : trace::HandlerWaitKind::kCondition;
    in_handler = begin_handler_wait(what, object, trace::LockKind::kMutex, false, frame.site());
  }
  NotedWait noted{slot, mutex, frame, slot->wait_kind, slot->wait_object, {}, {}};
  if (FORKSIGHT_UNLIKELY(noted.outer_kind != trace::WaitKind::kNone)) noted.outer_site = slot->wait_site;
  slot->wait_kind = trace::WaitKind::kNone;
  compiler_fence();
  slot->wait_object = object;
  store_site(slot->wait_site, frame);
  compiler_fence();
  slot->wait_kind = kind;
  const bool is_pushed = push_cleanup(noted.buffer, leave_cancelled_wait, &noted);
  const int result = wait();
  pop_cleanup(is_pushed, noted.buffer);
  leave_wait(noted);
  end_handler_wait(in_handler);
  return result;
}

}  // namespace forksight
