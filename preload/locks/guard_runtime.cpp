#include "locks/guard_runtime.hpp"

#include <atomic>

#include "guest/site.hpp"
#include "loader/elf_view.hpp"
#include "loader/loaded_object.hpp"
#include "loader/modules.hpp"
#include "loader/next.hpp"
#include "loader/scope.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {

constexpr const char kAcquire[] = "__cxa_guard_acquire";
constexpr const char kRelease[] = "__cxa_guard_release";
constexpr const char kAbort[] = "__cxa_guard_abort";

GuardRuntime look_up(const ElfView& view) {
  return {reinterpret_cast<int (*)(std::uint64_t*)>(view.find_function(kAcquire)),
          reinterpret_cast<void (*)(std::uint64_t*)>(view.find_function(kRelease)),
          reinterpret_cast<void (*)(std::uint64_t*)>(view.find_function(kAbort))};
}

// The runtime in the global scope of the start-up objects. If there is such a runtime, all callers use it. These
// variables are set once, g_startup_state as the last.
enum class State : std::uint8_t { kUnknown, kPresent, kAbsent };
constinit GuardRuntime g_startup = {};
constinit std::atomic<State> g_startup_state{State::kUnknown};

// Finds the functions in the global scope of the start-up objects. The callers refer to the versions of libstdc++. But
// if a library before libstdc++ defines a name without a version, the loader binds the reference to that library. Such
// a library may define only some of the names.
GuardRuntime find_at_startup() {
  constexpr const char kOwner[] = "libstdc++.so.6";
  return {reinterpret_cast<int (*)(std::uint64_t*)>(find_next_of(kAcquire, kOwner)),
          reinterpret_cast<void (*)(std::uint64_t*)>(find_next_of(kRelease, kOwner)),
          reinterpret_cast<void (*)(std::uint64_t*)>(find_next_of(kAbort, kOwner))};
}

// The runtime of each caller, in a process that started without a C++ runtime. dlopen has loaded these callers.
// `caller` is stored last, so that an entry with a caller is complete.
struct CallerEntry {
  std::atomic<std::uint64_t> caller;  // identify(), 0: empty
  std::uint64_t provider;
  GuardRuntime runtime;
};
constexpr std::uint32_t kCallers = 256;
constinit CallerEntry g_callers[kCallers] = {};
constinit std::atomic<std::uint32_t> g_caller_count{0};

std::uint64_t provider_of(const GuardRuntime& runtime) {
  return identify(find_object(reinterpret_cast<std::uint64_t>(runtime.acquire)));
}

void remember(std::uint64_t caller, const GuardRuntime& runtime) {
  if (caller == 0) return;
  const std::uint32_t index = g_caller_count.fetch_add(1, std::memory_order_acq_rel);
  if (index >= kCallers) return;
  CallerEntry& entry = g_callers[index];
  entry.provider = provider_of(runtime);
  entry.runtime = runtime;
  entry.caller.store(caller, std::memory_order_release);
}

ElfView view_of(const Module& module) {
  return {module.bias, module.dynamic, module.is_permanent ? Trust::kStaysLoaded : Trust::kNone};
}

// True if the module is a C++ runtime: it exports __cxa_guard_acquire. The shim itself exports this name, too, but is
// no runtime.
bool provides_guards(const Module& module) {
  return module.dynamic != nullptr && module.dynamic != _DYNAMIC && view_of(module).find_function(kAcquire) != 0;
}

GuardRuntime find_for(std::uint64_t caller) {
  refresh_modules();
  const Module* const module = find_module(caller);
  const Module* provider = module != nullptr ? find_in_tree(*module, provides_guards) : nullptr;
  // If none of the libraries that the caller needs is a runtime, other code has opened one with RTLD_GLOBAL.
  for (std::uint32_t i = 0; i < module_count() && provider == nullptr; ++i) {
    if (module_at(i).end != 0 && provides_guards(module_at(i))) provider = &module_at(i);
  }
  if (provider != nullptr) return look_up(view_of(*provider));
  return {reinterpret_cast<int (*)(std::uint64_t*)>(find_by_loader(caller, kAcquire)),
          reinterpret_cast<void (*)(std::uint64_t*)>(find_by_loader(caller, kRelease)),
          reinterpret_cast<void (*)(std::uint64_t*)>(find_by_loader(caller, kAbort))};
}

}  // namespace

GuardRuntime guard_runtime_of(std::uint64_t caller) {
  if (FORKSIGHT_UNLIKELY(g_startup_state.load(std::memory_order_acquire) == State::kUnknown)) {
    // Threads that get here at the same time find and store the same values.
    const GuardRuntime found = find_at_startup();
    if (found.acquire != nullptr) g_startup = found;
    g_startup_state.store(found.acquire != nullptr ? State::kPresent : State::kAbsent, std::memory_order_release);
  }
  if (FORKSIGHT_LIKELY(g_startup_state.load(std::memory_order_acquire) == State::kPresent)) return g_startup;
  const std::uint64_t object = identify(find_object(caller));
  const std::uint32_t known = g_caller_count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < known && i < kCallers; ++i) {
    const CallerEntry& entry = g_callers[i];
    if (object != 0 && entry.caller.load(std::memory_order_acquire) == object &&
        entry.provider == provider_of(entry.runtime)) {
      return entry.runtime;
    }
  }
  const GuardRuntime found = find_for(caller);
  if (found.acquire == nullptr) __builtin_trap();
  remember(object, found);
  return found;
}

void forget_guard_callers(bool some_are_gone) {
  if (!some_are_gone) return;
  for (CallerEntry& entry : g_callers) entry.caller.store(0, std::memory_order_relaxed);
  g_caller_count.store(0, std::memory_order_release);
}

}  // namespace forksight
