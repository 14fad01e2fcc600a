// What the two rules about atfork handlers share: one that was called and has not come back.
#pragma once

#include <optional>
#include <string>

#include "diagnose/evidence.hpp"

namespace forksight::handlers {

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
