// Shared by the rules about atfork handlers. These rules report a handler that was called and has not returned.
#pragma once

#include <optional>
#include <string>

#include "diagnose/evidence.hpp"

namespace forksight::handlers {

// Returns how certain it is that the handler never returns; nullopt: the handler may still return.
std::optional<CallEnd> find_end(const Evidence& evidence, const model::HandlerRun& run);

// A prepare handler waits for a lock. The holder of this lock waits for a lock that an earlier prepare handler of the
// same fork has taken. The holder may wait for that second lock directly, or through other threads. So the order of the
// handlers closes a ring of waits.
struct Inversion {
  const model::HandlerHold* hold = nullptr;  // the lock that the earlier handler took
  const model::Wait* wait = nullptr;         // how a thread of the ring waits for that lock
  std::optional<model::HandlerId> taken_by;  // nullopt: it is not known which earlier handler took it
  // True if the whole ring consists of locks. No signal handler can end a wait in such a ring.
  bool is_of_locks = false;
};
std::optional<Inversion> find_inversion(const Evidence& evidence, const model::HandlerRun& run);

// Returns a name such as "prepare handler lock_registry of libfoo.so".
std::string name(const model::Model& model, model::HandlerId handlers, model::HandlerPhase phase);
// Returns the name of the lock, such as "queue_mutex"; "the lock at 0x55d0c0" if the lock has no name.
std::string name(const model::HandlerHold& hold);

// Makes the whole finding, except its fixes and the sentences that only one of the rules adds. `touch` is the recorded
// touch in which the handler hangs; null if no touch was recorded.
Finding describe(const char* slug, const Evidence& evidence, const model::HandlerRun& run, const CallEnd& end,
                 const model::Touch* touch);

}  // namespace forksight::handlers
