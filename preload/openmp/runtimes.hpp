// The OpenMP runtimes of this process. They are recognised by the functions that they export, and the shim calls these
// functions at their addresses. One process may have several runtimes (renamed copies of libgomp inside of wheels,
// opened RTLD_LOCAL).
#pragma once

#include <cstddef>
#include <cstdint>

#include "forksight/trace/format.hpp"
#include "loader/modules.hpp"
#include "record/slots.hpp"

namespace forksight {

enum class OmpEntry : std::uint32_t {
#define FORKSIGHT_OMP_HOOK(name, versions) name,
#include "hooks.def"
  kCount,
};

struct Runtime {
  bool present;
  trace::RuntimeKind kind;
  const link_map* map;
  std::uint64_t bias;
  const ElfW(Dyn) * dynamic;
  // True for a shared library that is libgomp and nothing else: its thread-local block contains no other data, and all
  // calls of its entries from other objects pass through the shim's hooks. False for a libgomp that is linked into a
  // program or a plugin.
  bool is_all_libgomp;
  std::uint64_t start;  // mapped range; a thread whose start routine is in it is a worker
  std::uint64_t end;
  const void* tls_image;  // PT_TLS: the initial contents of a new thread's block
  std::size_t tls_image_bytes;
  std::size_t tls_bytes;  // 0: no TLS segment
  int (*get_max_threads)();
  int (*get_level)();
  int (*get_active_level)();
  void (*set_num_threads)(int);
  int (*get_max_active_levels)();
  void (*set_max_active_levels)(int);
  int (*get_dynamic)();
  void (*set_dynamic)(int);
  int (*get_thread_limit)();
  int (*pause_all)(int);
  std::uint64_t entries[static_cast<std::size_t>(OmpEntry::kCount)];  // 0: not looked up yet
};

// Called by the library events (loader/library_events.hpp). recognise_runtime() adds the module to the table of
// runtimes if the module is a runtime. forget_runtime() removes the module. forget_callers() forgets which runtime
// serves which object.
void recognise_runtime(Module& module);
void forget_runtime(const Module& module);
void forget_callers(bool some_are_gone);
Runtime& runtime_at(std::uint32_t index);

// The runtime that a GOMP call from `caller` would have been bound to without the shim: the first runtime that was
// loaded at start-up, else the one in the caller's own tree of needed libraries, else any. Null if there is none. With
// a wrong runtime the program would compute wrong results, because the body of the region asks its own runtime for its
// thread number. So the object of the caller is looked up at every call, without a lock. Only the step from the object
// to its runtime is cached.
Runtime* runtime_of_caller(std::uint64_t caller);
std::uint64_t entry_of(Runtime& runtime, OmpEntry entry);
// The address of the entry for a caller whose runtime is not known: asks the loader.
std::uint64_t find_entry_by_loader(std::uint64_t caller, OmpEntry entry);

// The number of living threads that the thread `creator_tid` made through this runtime. The pool of that thread
// consists of these threads and of the thread itself. Sets `first`, if it is not null, to the slot of one of the
// counted threads.
std::uint32_t count_workers(const Runtime& runtime, std::int32_t creator_tid, Slot** first);
std::uint32_t count_all_workers(const Runtime& runtime);
// Called when the runtime has ended the pool of the thread `creator_tid` (omp_pause_resource_all). The workers no
// longer count, although they end a little later, by pthread_exit.
void retire_workers(const Runtime& runtime, std::int32_t creator_tid);

// The team that a region of the calling thread would get, computed like gomp_resolve_num_threads (libgomp/parallel.c,
// GCC 12).
struct Team {
  std::uint32_t size;
  bool is_guess;  // OMP_DYNAMIC: the load of the machine decides, so the team may be smaller
};
// `clause`: num_threads; 0: none. `sections`: number of sections of a sections construct, which needs no more threads;
// 0 for other constructs.
Team predict_team(const Runtime& runtime, std::uint32_t clause, std::uint32_t sections);

}  // namespace forksight
