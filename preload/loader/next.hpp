// The real functions behind the hooks. For each hook, this is the definition that comes next after the shim in the
// order of the global scope, as RTLD_NEXT would find it. The initialiser fills in the addresses. A hook that runs
// earlier calls the initialiser first.
#pragma once

#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/types.h>
#include <threads.h>
#include <time.h>

#include <cstdint>

namespace forksight {

struct Next {
#define FORKSIGHT_HOOK(name, required, probe, versions, prototype, contract) void* name;
#include "hooks.def"
  void* real_syscall;  // null: not found, or not looked up yet
  bool ready;
};

// Hidden, so that the compiler knows that g_next is part of this library, and the address needs no look-up.
// fast_path.hpp uses the name in the asm label.
extern Next g_next asm("forksight_g_next") __attribute__((visibility("hidden")));
// The variable __libc_single_threaded of glibc 2.32 and later: 0 once libc has made a thread. Null: there is no such
// variable.
extern const char* g_libc_single_threaded __attribute__((visibility("hidden")));
// True if the real pthread_spin_lock has the same instructions as the one of glibc (x86-64, since 2.34): `lock decl`,
// followed by a loop.
extern bool g_spin_is_glibcs __attribute__((visibility("hidden")));

// Searches the objects after the shim for libc's function `name`, as the loader would search them. Returns the
// function to which the loader would bind a reference to libc's version of `name`; 0 if there is none. Before glibc
// 2.34 libc consists of several libraries, and some of these may be opened later. `stays` is false for a function that
// may be unloaded. The address of such a function must not be kept. Reads the loader's list without its lock: objects
// that were loaded at start-up stay loaded, and others are copied. async-signal-safe and fork-child-safe.
std::uint64_t find_next(const char* name, bool& stays);
inline std::uint64_t find_next(const char* name) {
  bool stays = false;
  return find_next(name, stays);
}

// As find_next(), but for a reference to a version of the library with the soname `owner`. The search ends at that
// library, and does not include objects that were loaded after the start.
std::uint64_t find_next_of(const char* name, const char* owner);

// libc's own definition, even if the definition of another library comes first; 0 if libc has none. Valid after
// resolve_next().
std::uint64_t find_in_libc(const char* name);

// The shim's own export of that name; 0 if it has none.
std::uint64_t find_hook(const char* name);

// True if a search for `name` finds libc's definition first. The search covers the objects that were loaded at
// start-up, from `from` on. It skips the shim.
bool leads_to_libc(const char* name, const link_map* from);

// True if another copy of the shim comes before this one. That copy does all the work.
bool has_earlier_shim();

// Finds the functions behind the hooks. False if a required function is missing: then the shim stays off. The hook of a
// missing function traps if it is called.
bool resolve_next();
// From now on now_ns() calls libc's clock_gettime(). Before glibc 2.31, that function crashes until libc's own
// initialiser has run. The shim's constructor runs after libc's initialiser, and calls this function. Hooks can be
// called earlier, by .preinit_array.
void use_clock_of_libc();

// Starts the shim. Called by the constructor or by the first hook, whichever comes first. Later calls cost one load.
void initialise_slow();
inline void initialise() {
  if (__builtin_expect(!g_next.ready, 0)) initialise_slow();
}

// NAME's real function, with NAME's type.
#define FORKSIGHT_NEXT(name) (reinterpret_cast<decltype(&::name)>(::forksight::next_of(::forksight::g_next.name)))

// As FORKSIGHT_NEXT, but only after initialise(), and only for functions that every libc.so.6 has, also before glibc
// 2.34.
#define FORKSIGHT_RESOLVED(name) (reinterpret_cast<decltype(&::name)>(::forksight::g_next.name))

// Finds a real function that is not known yet: the hook runs before the shim is started, or the function is in a thread
// library that was opened later (before glibc 2.34). Traps if the function does not exist. This cannot happen, because
// the caller of the hook was linked with the function.
void* find_late(void*& function);

inline void* next_of(void*& function) {
  void* const known = __atomic_load_n(&function, __ATOMIC_RELAXED);
  return __builtin_expect(known != nullptr, 1) ? known : find_late(function);
}

// Functions of libc that have no prototype in its headers (nptl/cleanup_compat.c). The pushed routine runs when
// cancellation or pthread_exit unwinds the frame that contains the buffer. It runs after the clean-up of the functions
// that this frame called, and before the clean-up of its callers.
struct Cleanup {
  void (*push)(_pthread_cleanup_buffer* buffer, void (*routine)(void*), void* argument);
  void (*pop)(_pthread_cleanup_buffer* buffer, int execute);
};
extern Cleanup g_cleanup __attribute__((visibility("hidden")));
// Looks the two functions up again. False: there is no thread library, so no thread can be cancelled either.
bool find_cleanup();

// Pushes the clean-up routine. False: there is no thread library, so nothing was pushed, and nothing may be popped.
inline bool push_cleanup(_pthread_cleanup_buffer& buffer, void (*routine)(void*), void* argument) {
  if (__builtin_expect(g_cleanup.push == nullptr, 0) && !find_cleanup()) return false;
  g_cleanup.push(&buffer, routine, argument);
  return true;
}
inline void pop_cleanup(bool is_pushed, _pthread_cleanup_buffer& buffer) {
  if (is_pushed) g_cleanup.pop(&buffer, 0);
}

}  // namespace forksight
