// Shared by the rules about locks inside of libc and of the loader.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "diagnose/evidence.hpp"
#include "forksight/trace/format.hpp"

namespace forksight::libc_calls {

// A child calls a function that takes a lock of libc. At the fork, a thread was inside of a function that takes the
// same lock.
struct Lost {
  const model::CallInFlight& in_flight;
  const model::Thread& holder;
  trace::LibcLock lock;  // of the locks that both functions take, the one that the fewest functions of libc take
  std::size_t common;    // the number of locks that both functions take
};
std::optional<Lost> find_lost(const model::Model& model, const model::Touch& touch);

// True if the forking thread itself was in the function when a signal came, and the handler of that signal forked.
bool is_in_handler(const model::Model& model, const model::Touch& touch, const Lost& lost);

std::string_view name(trace::LibcLock lock);  // such as "tzset_lock"
std::string_view what(trace::LibcLock lock);  // such as "libc's lock of the time zone"

// Returns how the call of the child ended or will end; nullopt: it returned, or may still return. The lost thread was
// in a function that takes the same lock. But the lost thread need not have held the lock at the fork. Only a child
// that can never go on proves that the lock was held.
std::optional<CallEnd> find_end(const Evidence& evidence, const model::Touch& touch);

// Makes the whole finding, except its fixes. `slug`: the name of the calling rule, such as "libc-lock-in-flight".
Finding describe(const Evidence& evidence, const char* slug, const model::Touch& touch, const Lost& lost,
                 const CallEnd& end);
void add_fixes(const model::Fork& fork, const model::Touch& touch, const Lost& lost, Finding& finding);

}  // namespace forksight::libc_calls
