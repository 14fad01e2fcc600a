// What the two rules about atfork handlers share: one that was called and has not come back.
#pragma once

#include <optional>
#include <string>

#include "diagnose/evidence.hpp"

namespace forksight::handlers {

// The run that the touching thread was in the middle of when it blocked: what it touched is told with the handler. Null
// if it was in none, or if the touch ended.
const model::HandlerRun* find_run(const model::Model& model, const model::Touch& touch);
// A process that is in the middle of a handler: its hang is told with that.
bool is_in_handler(const model::Model& model, model::ProcessId process);

// How certain it is that the handler never comes back; nullopt: it may well be at work.
struct End {
  Certainty certainty = Certainty::kCertain;
  Outcome outcome = Outcome::kHang;
};
std::optional<End> find_end(const Evidence& evidence, const model::HandlerRun& run);

// Everything but the fixes and the words that only one of the rules has. `touch` is what the handler touched, or null.
Finding describe(const char* slug, const Evidence& evidence, const model::HandlerRun& run, const End& end,
                 const model::Touch* touch);

}  // namespace forksight::handlers
