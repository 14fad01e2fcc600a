// The functions behind the hooks: the next definition of each after the shim, in the order of the global scope, as
// RTLD_NEXT would find it. Filled in by the initialiser; a hook that runs before that calls the initialiser first.
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
  void* real_syscall;  // null: not found, or not looked for yet
  bool ready;
};

// Of this library, as a declaration alone does not say: so it is called without a look-up of its address. By that name
// to fast_path.hpp.
extern Next g_next asm("forksight_g_next") __attribute__((visibility("hidden")));
// libc's variable of glibc 2.32 and later: 0 once it has made a thread. Null: there is none.
extern const char* g_libc_single_threaded __attribute__((visibility("hidden")));
// The real pthread_spin_lock is, byte by byte, the one of glibc (x86-64, since 2.34): `lock decl`, and a loop behind
// it.
extern bool g_spin_is_glibcs __attribute__((visibility("hidden")));

// What a reference to libc's version of `name` would be bound to after the shim; 0 if there is nothing. Before
// glibc 2.34 libc is several libraries, of which some may be opened later: `stays` is false of a function that may be
// unloaded, so that its address may not be kept. Reads the loader's list without its lock: what was loaded at start-up
// stays, the rest is copied. async-signal-safe and fork-child-safe.
std::uint64_t find_next(const char* name, bool& stays);
inline std::uint64_t find_next(const char* name) {
  bool stays = false;
  return find_next(name, stays);
}

// The same of another library's version, up to that library, which is known by its soname. What is loaded later is not
// looked at.
std::uint64_t find_next_of(const char* name, const char* owner);

// libc's own definition, whoever stands before it; 0 if it has none. After resolve_next().
std::uint64_t find_in_libc(const char* name);

// The shim's own export of that name; 0 if it has none.
std::uint64_t find_hook(const char* name);

// A search for that name, without the shim, through the objects of the start-up from this one on, ends at libc's.
bool leads_to_libc(const char* name, const link_map* from);

// Another copy of the shim stands before this one, and does all the work.
bool has_elder();

// False if a required function is missing: then every hook of it fails as a missing function would, by a trap.
bool resolve_next();

// Brings the shim up. Called by the constructor or by the first hook, whichever comes first; a load afterwards.
void initialise_slow();
inline void initialise() {
  if (__builtin_expect(!g_next.ready, 0)) initialise_slow();
}

// NAME's real function, with NAME's type.
#define FORKSIGHT_NEXT(name) (reinterpret_cast<decltype(&::name)>(::forksight::next_of(::forksight::g_next.name)))

// The same after initialise(), for functions that every libc.so.6 has, also that before glibc 2.34.
#define FORKSIGHT_RESOLVED(name) (reinterpret_cast<decltype(&::name)>(::forksight::g_next.name))

// Of a hook that runs before the shim is up; or, before glibc 2.34, of a thread library that was opened later. Whoever
// calls the hook was linked with the real function: where there is none, it fails by a trap.
void* find_late(void*& function);

inline void* next_of(void*& function) {
  void* const known = __atomic_load_n(&function, __ATOMIC_RELAXED);
  return __builtin_expect(known != nullptr, 1) ? known : find_late(function);
}

// libc's, without a prototype in its headers (nptl/cleanup_compat.c). What is pushed runs when cancellation or
// pthread_exit unwinds the frame that the buffer lies in, after the callee's own clean-up and before the caller's.
struct Cleanup {
  void (*push)(_pthread_cleanup_buffer* buffer, void (*routine)(void*), void* argument);
  void (*pop)(_pthread_cleanup_buffer* buffer, int execute);
};
extern Cleanup g_cleanup __attribute__((visibility("hidden")));
// False: there is no thread library, so nothing is cancelled, either.
bool find_cleanup();

// False if nothing was pushed; then nothing may be popped.
inline bool push_cleanup(_pthread_cleanup_buffer& buffer, void (*routine)(void*), void* argument) {
  if (__builtin_expect(g_cleanup.push == nullptr, 0) && !find_cleanup()) return false;
  g_cleanup.push(&buffer, routine, argument);
  return true;
}
inline void pop_cleanup(bool is_pushed, _pthread_cleanup_buffer& buffer) {
  if (is_pushed) g_cleanup.pop(&buffer, 0);
}

}  // namespace forksight
