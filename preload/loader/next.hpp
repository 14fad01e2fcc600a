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
// The real pthread_spin_lock is, byte by byte, the one of glibc (x86-64, since 2.34): `lock decl`, and a loop behind
// it.
extern bool g_spin_is_glibcs __attribute__((visibility("hidden")));

// What a reference to libc's version of `name` would be bound to after the shim, up to libc; 0 if there is nothing.
// Reads the loader's list without its lock: what it visits was loaded at start-up and stays. async-signal-safe and
// fork-child-safe.
std::uint64_t find_next(const char* name);

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

// The same after initialise(), for functions that every libc has.
#define FORKSIGHT_RESOLVED(name) (reinterpret_cast<decltype(&::name)>(::forksight::g_next.name))

inline void* next_of(void*& function) {
  if (__builtin_expect(function == nullptr, 0)) {
    initialise();
    if (function == nullptr) __builtin_trap();
  }
  return function;
}

}  // namespace forksight
