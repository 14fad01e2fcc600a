// What the rules about locks inside of libc and the loader share.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "diagnose/evidence.hpp"
#include "forksight/trace/format.hpp"

namespace forksight::libc_calls {

// A call in a child of a function whose lock a thread at the fork was inside of.
struct Lost {
  const model::CallInFlight& in_flight;
  const model::Thread& holder;
  trace::LibcLock lock;  // that both functions take: the most particular one
  std::size_t common;    // how many there are
};
std::optional<Lost> find_lost(const model::Model& model, const model::Touch& touch);

// The forking thread itself was inside of the function when a signal came, whose handler forked.
bool is_in_handler(const model::Model& model, const model::Touch& touch, const Lost& lost);

std::string_view name(trace::LibcLock lock);  // "tzset_lock"
std::string_view what(trace::LibcLock lock);  // "libc's lock of the time zone"

// What became of the call; nullopt: it came back, or may yet. That a thread was inside of a function does not say that
// it held the lock: only a child that does not move any more proves it.
struct End {
  Certainty harm = Certainty::kProven;
  Outcome outcome = Outcome::kHang;
};
std::optional<End> find_end(const Evidence& evidence, const model::Touch& touch);

// The whole finding but its fixes; `slug` is of the rule that asks.
Finding describe(const Evidence& evidence, const char* slug, const model::Touch& touch, const Lost& lost,
                 const End& end);
void add_fixes(const model::Fork& fork, const model::Touch& touch, const Lost& lost, Finding& finding);

}  // namespace forksight::libc_calls
