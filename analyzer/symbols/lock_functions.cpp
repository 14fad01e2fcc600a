#include "symbols/lock_functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace forksight::symbols {
namespace {

struct KnownFunction {
  std::string_view library;   // a part of the name
  std::string_view type;      // a part of the name behind that
  std::string_view function;  // the last part of the name, without its template arguments
  LockFunction meaning;
};

constexpr LockFunction absl_lock(LockRole role, LockArgument argument = LockArgument::kFirst) {
  return {role, argument, "absl::Mutex", 4};
}
constexpr LockFunction rust_mutex(LockRole role, LockArgument argument = LockArgument::kFirst) {
  return {role, argument, "std::sync::Mutex", 4};
}
constexpr LockFunction rust_rwlock(LockRole role, LockArgument argument = LockArgument::kFirst) {
  return {role, argument, "std::sync::RwLock", 4};
}
constexpr LockFunction parking_lot(LockRole role, LockArgument argument = LockArgument::kFirst) {
  return {role, argument, "parking_lot lock", 1};
}

constexpr auto kTaking = LockRole::kTakes;
constexpr auto kWaiting = LockRole::kWaits;
constexpr auto kReleasing = LockRole::kReleases;
constexpr auto kSecond = LockArgument::kSecond;
constexpr auto kFirstOrNext = LockArgument::kFirstOrNext;
constexpr auto kGuard = LockArgument::kGuard;

// abseil 20220623 and later releases; Rust 1.63 to 1.95; parking_lot 0.12. Of two rows that fit, the first one counts.
constexpr auto kLockFunctions = std::to_array<KnownFunction>({
    {"absl::", "::Mutex::", "Lock", absl_lock(kTaking)},
    {"absl::", "::Mutex::", "lock", absl_lock(kTaking)},
    {"absl::", "::Mutex::", "WriterLock", absl_lock(kTaking)},
    {"absl::", "::Mutex::", "ReaderLock", absl_lock(kTaking)},
    {"absl::", "::Mutex::", "lock_shared", absl_lock(kTaking)},
    {"absl::", "::Mutex::", "TryLock", absl_lock(kTaking)},
    {"absl::", "::Mutex::", "try_lock", absl_lock(kTaking)},
    {"absl::", "::Mutex::", "ReaderTryLock", absl_lock(kTaking)},
    {"absl::", "::Mutex::", "LockSlow", absl_lock(kTaking)},
    {"absl::", "::Mutex::", "LockSlowLoop", absl_lock(kTaking)},
    {"absl::", "::Mutex::", "LockSlowWithDeadline", absl_lock(kTaking)},
    {"absl::", "::Mutex::", "LockWhen", absl_lock(kWaiting)},
    {"absl::", "::Mutex::", "LockWhenWithTimeout", absl_lock(kWaiting)},
    {"absl::", "::Mutex::", "LockWhenWithDeadline", absl_lock(kWaiting)},
    {"absl::", "::Mutex::", "ReaderLockWhen", absl_lock(kWaiting)},
    {"absl::", "::Mutex::", "Await", absl_lock(kWaiting)},
    {"absl::", "::Mutex::", "AwaitWithTimeout", absl_lock(kWaiting)},
    {"absl::", "::Mutex::", "AwaitWithDeadline", absl_lock(kWaiting)},
    {"absl::", "::Mutex::", "AwaitCommon", absl_lock(kWaiting)},
    {"absl::", "::CondVar::", "Wait", absl_lock(kWaiting, kSecond)},
    {"absl::", "::CondVar::", "WaitCommon", absl_lock(kWaiting, kSecond)},
    {"absl::", "::CondVar::", "WaitWithTimeout", absl_lock(kWaiting, kSecond)},
    {"absl::", "::CondVar::", "WaitWithDeadline", absl_lock(kWaiting, kSecond)},
    {"absl::", "::Mutex::", "Unlock", absl_lock(kReleasing)},
    {"absl::", "::Mutex::", "unlock", absl_lock(kReleasing)},
    {"absl::", "::Mutex::", "unlock_shared", absl_lock(kReleasing)},
    {"absl::", "::Mutex::", "WriterUnlock", absl_lock(kReleasing)},
    {"absl::", "::Mutex::", "ReaderUnlock", absl_lock(kReleasing)},
    {"absl::", "::Mutex::", "UnlockSlow", absl_lock(kReleasing)},
    {"absl::", "::MutexLock::", "MutexLock", absl_lock(kTaking, kSecond)},
    {"absl::", "::WriterMutexLock::", "WriterMutexLock", absl_lock(kTaking, kSecond)},
    {"absl::", "::ReaderMutexLock::", "ReaderMutexLock", absl_lock(kTaking, kSecond)},
    {"absl::", "::ReleasableMutexLock::", "ReleasableMutexLock", absl_lock(kTaking, kSecond)},
    {"absl::", "::MutexLock::", "~MutexLock", absl_lock(kReleasing, kGuard)},
    {"absl::", "::WriterMutexLock::", "~WriterMutexLock", absl_lock(kReleasing, kGuard)},
    {"absl::", "::ReaderMutexLock::", "~ReaderMutexLock", absl_lock(kReleasing, kGuard)},
    {"absl::", "::ReleasableMutexLock::", "~ReleasableMutexLock", absl_lock(kReleasing, kGuard)},
    {"absl::", "::ReleasableMutexLock::", "Release", absl_lock(kReleasing, kGuard)},
    {"parking_lot", "", "lock_slow", parking_lot(kTaking)},
    {"parking_lot", "", "lock_shared_slow", parking_lot(kTaking)},
    {"parking_lot", "", "lock_exclusive_slow", parking_lot(kTaking)},
    {"parking_lot", "", "lock_upgradable_slow", parking_lot(kTaking)},
    {"parking_lot", "", "unlock_slow", parking_lot(kReleasing)},
    {"parking_lot", "", "unlock_shared_slow", parking_lot(kReleasing)},
    {"parking_lot", "", "unlock_exclusive_slow", parking_lot(kReleasing)},
    {"parking_lot", "::RawMutex", "lock", parking_lot(kTaking)},
    {"parking_lot", "::RawMutex", "unlock", parking_lot(kReleasing)},
    {"parking_lot", "::RawRwLock", "lock_shared", parking_lot(kTaking)},
    {"parking_lot", "::RawRwLock", "lock_exclusive", parking_lot(kTaking)},
    {"parking_lot", "::RawRwLock", "unlock_shared", parking_lot(kReleasing)},
    {"parking_lot", "::RawRwLock", "unlock_exclusive", parking_lot(kReleasing)},
    {"parking_lot", "condvar", "wait", parking_lot(kWaiting, kSecond)},
    {"parking_lot", "condvar", "wait_until_internal", parking_lot(kWaiting, kSecond)},
    {"lock_api", "mutex::Mutex<", "lock", parking_lot(kTaking)},
    {"lock_api", "rwlock::RwLock<", "read", parking_lot(kTaking)},
    {"lock_api", "rwlock::RwLock<", "write", parking_lot(kTaking)},
    {"drop_in_place", "lock_api::mutex::MutexGuard", "drop_in_place", parking_lot(kReleasing, kGuard)},
    {"drop_in_place", "lock_api::rwlock::RwLockReadGuard", "drop_in_place", parking_lot(kReleasing, kGuard)},
    {"drop_in_place", "lock_api::rwlock::RwLockWriteGuard", "drop_in_place", parking_lot(kReleasing, kGuard)},
    {"std", "mutex", "lock_contended", rust_mutex(kTaking)},
    {"std", "rwlock", "read_contended", rust_rwlock(kTaking)},
    {"std", "rwlock", "write_contended", rust_rwlock(kTaking)},
    {"std::sys", "futex", "read_contended", rust_rwlock(kTaking)},
    {"std::sys", "futex", "write_contended", rust_rwlock(kTaking)},
    {"std::sys", "futex", "lock_contended", rust_mutex(kTaking)},
    {"std::s", "Condvar", "wait", rust_mutex(kWaiting, kFirstOrNext)},
    {"std::s", "Condvar", "wait_while", rust_mutex(kWaiting, kFirstOrNext)},
    {"std::s", "Condvar", "wait_timeout", rust_mutex(kWaiting, kFirstOrNext)},
    {"std::s", "Condvar", "wait_timeout_while", rust_mutex(kWaiting, kFirstOrNext)},
    {"std::s", "Condvar", "wait_optional_timeout", rust_mutex(kWaiting, kFirstOrNext)},
    {"std::s", "utex::Mutex", "lock", rust_mutex(kTaking, kFirstOrNext)},
    {"std::s", "utex::Mutex", "try_lock", rust_mutex(kTaking, kFirstOrNext)},
    {"std::s", "utex::Mutex", "unlock", rust_mutex(kReleasing)},
    {"std::s", "::RwLock", "read", rust_rwlock(kTaking, kFirstOrNext)},
    {"std::s", "::RwLock", "write", rust_rwlock(kTaking, kFirstOrNext)},
    {"std::s", "::RwLock", "try_read", rust_rwlock(kTaking, kFirstOrNext)},
    {"std::s", "::RwLock", "try_write", rust_rwlock(kTaking, kFirstOrNext)},
    {"std::s", "::RwLock", "read_unlock", rust_rwlock(kReleasing)},
    {"std::s", "::RwLock", "write_unlock", rust_rwlock(kReleasing)},
    {"drop_in_place", "MutexGuard", "drop_in_place", rust_mutex(kReleasing, kGuard)},
    {"drop_in_place", "RwLockReadGuard", "drop_in_place", rust_rwlock(kReleasing, kGuard)},
    {"drop_in_place", "RwLockWriteGuard", "drop_in_place", rust_rwlock(kReleasing, kGuard)},
    {"core::mem::", "", "drop", rust_mutex(kReleasing, LockArgument::kFirstOfDrop)},
});

// "lock" of "a::Mutex<b::T>::lock<c>".
std::string_view last_part(std::string_view name) {
  std::size_t end = name.size();
  if (name.ends_with('>')) {
    int depth = 0;
    while (end > 0) {
      const char c = name[--end];
      if (c == '>') ++depth;
      if (c == '<' && --depth == 0) break;
    }
    if (name.substr(0, end).ends_with("::")) end -= 2;  // Rust: "f::<T>"
  }
  name = name.substr(0, end);
  const std::size_t colons = name.rfind("::");
  return colons == std::string_view::npos ? name : name.substr(colons + 2);
}

bool has_parts(std::string_view name, const KnownFunction& known) {
  const std::size_t library = name.find(known.library);
  return library != std::string_view::npos && name.find(known.type, library) != std::string_view::npos;
}

// In Rust's own mangling each part of a name comes behind its length.
bool fits_mangled(std::string_view name, const KnownFunction& known) {
  const std::string function = fmt::format("{}{}", known.function.size(), known.function);
  return known.type.find(':') == std::string_view::npos && known.library.find(':') == std::string_view::npos &&
         known.type.find('<') == std::string_view::npos && has_parts(name, known) &&
         name.find(function) != std::string_view::npos;
}

}  // namespace

const LockFunction* find_lock_function(std::string_view name) {
  const bool is_mangled = name.starts_with("_R");
  const std::string_view last = last_part(name);
  const auto fits = [&](const KnownFunction& known) {
    return is_mangled ? fits_mangled(name, known) : last == known.function && has_parts(name, known);
  };
  const auto found = std::ranges::find_if(kLockFunctions, fits);
  return found == kLockFunctions.end() ? nullptr : &found->meaning;
}

bool never_returns(std::string_view name) {
  constexpr auto kParts = std::to_array<std::string_view>(
      {"panic", "_Unwind_Resume", "__cxa_throw", "__cxa_rethrow", "__throw_", "__stack_chk_fail", "terminate",
       "unwrap_failed", "expect_failed", "handle_alloc_error", "slice_index_fail", "slice_start_index",
       "slice_end_index", "__assert_fail", "__builtin_unreachable", "_dl_fatal"});
  constexpr auto kNames = std::to_array<std::string_view>(
      {"abort", "exit", "_exit", "_Exit", "quick_exit", "pthread_exit", "__clang_call_terminate", "longjmp"});
  return std::ranges::find(kNames, name) != kNames.end() ||
         std::ranges::any_of(kParts, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

}  // namespace forksight::symbols
