// What the two rules about atfork handlers share: one that was called and has not come back.
#pragma once

#include <optional>
#include <string>

#include "diagnose/evidence.hpp"

namespace forksight::handlers {

// How certain it is that the handler never comes back; nullopt: it may well be at work.
struct End {
  Certainty harm = Certainty::kProven;
  Outcome outcome = Outcome::kHang;
};
std::optional<End> find_end(const Evidence& evidence, const model::HandlerRun& run);

// A prepare handler waits for a lock whose holder waits, by itself or through others, for a lock that an earlier
// prepare handler of the same fork has taken: the handlers' order closes the ring.
struct Inversion {
  const model::HandlerHold* hold = nullptr;  // what the earlier handler took, and ...
  const model::Wait* wait = nullptr;         // ... who waits for that
  std::optional<model::HandlerId> taken_by;  // none: which of the earlier ones is not known
  bool is_of_locks = false;                  // all of the ring: no signal handler ends any of its waits
};
std::optional<Inversion> find_inversion(const Evidence& evidence, const model::HandlerRun& run);

// "prepare handler lock_registry of libfoo.so"
std::string name(const model::Model& model, model::HandlerId handlers, model::HandlerPhase phase);
// "queue_mutex", "the lock at 0x55d0c0"
std::string name(const model::HandlerHold& hold);

// Everything but the fixes and the words that only one of the rules has. `touch` is what the handler touched, or null.
Finding describe(const char* slug, const Evidence& evidence, const model::HandlerRun& run, const End& end,
                 const model::Touch* touch);

}  // namespace forksight::handlers
