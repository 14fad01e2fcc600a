// The functions of libraries whose locks do not record who holds them. Their names show what they do with a lock.
#pragma once

#include <cstdint>
#include <string_view>

namespace forksight::symbols {

enum class LockRole {
  kTakes,     // returns with the lock taken
  kWaits,     // releases the lock, waits for a condition, and returns with the lock taken
  kReleases,  // takes the lock away from its holder
};

// Where a call has the lock that it is about.
enum class LockArgument {
  kFirst,        // the address of the lock is the first argument
  kSecond,       // it is the second argument
  kFirstOrNext,  // it is the first argument, or the second one behind the place for the result
  kGuard,        // the first argument is the address of a guard, which begins with the address of the lock
  kFirstOfDrop,  // the first argument may be the address of the lock, or any other value that is dropped
};

struct LockFunction {
  LockRole role = LockRole::kTakes;
  LockArgument argument = LockArgument::kFirst;
  const char* lock = "";         // what users call such a lock
  std::uint32_t word_bytes = 4;  // of the word at the lock's address that is 0 while the lock is free
};

// `name`: demangled, or in Rust's own mangling, which is not demangled. Null: the function is none of these.
const LockFunction* find_lock_function(std::string_view name);

// True for functions that never return, such as abort() and Rust's panics.
bool never_returns(std::string_view name);

}  // namespace forksight::symbols
