// Records what an atfork handler waits for, before it blocks.
#pragma once

#include "forksight/trace/handlers.hpp"
#include "guest/site.hpp"
#include "record/slots.hpp"

namespace forksight {

struct HandlerWait {
  std::uint64_t record;  // 0: none
};
// Writes the record of a wait that is about to begin. Call end_handler_wait() after the wait. `object`: the lock, the
// condition variable, or the thread pointer of the thread to be joined. Writes nothing if the calling thread is not
// inside of a handler (is_in_handler).
HandlerWait begin_handler_wait(trace::HandlerWaitKind kind, std::uint64_t object, trace::LockKind lock_kind, bool timed,
                               const Site& site);
void end_handler_wait(const HandlerWait& wait);

}  // namespace forksight
