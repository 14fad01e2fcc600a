// The entry points by which compiled code starts a parallel region on libgomp (GCC 12's libgomp.map). LLVM's runtime
// has the same entry points. In a process that is not a watched child, each hook makes one look-up and one call.
#include "guest/site.hpp"
#include "guest/sys.hpp"
#include "loader/next.hpp"
#include "openmp/omp_policy.hpp"
#include "openmp/runtimes.hpp"

#include "guest/house_rules.hpp"

namespace {

using forksight::OmpEntry;

using Body = void (*)(void*);

struct Call {
  void* function;
  forksight::Runtime* runtime;
  forksight::RegionGuard guard;
};

// Finds the runtime that serves this caller. If the function in the result is null, the caller's runtime was unloaded,
// or has no such entry.
inline Call find(OmpEntry entry, std::uint64_t caller) {
  forksight::initialise();
  forksight::Runtime* runtime = forksight::runtime_of_caller(caller);
  const std::uint64_t function =
      runtime != nullptr ? forksight::entry_of(*runtime, entry) : forksight::find_entry_by_loader(caller, entry);
  return {reinterpret_cast<void*>(function), runtime, {0, 0}};
}

// Finds the function to call, and the num_threads to ask for. The entry exists, because otherwise the loader would have
// refused to load the caller.
inline Call begin(const forksight::Region& region, const forksight::Site& site) {
  Call call = find(region.entry, site.pc);
  if (FORKSIGHT_UNLIKELY(call.function == nullptr)) __builtin_trap();
  call.guard = {0, region.clause};
  if (FORKSIGHT_UNLIKELY(forksight::g_watch_regions) && call.runtime != nullptr) {
    call.guard = forksight::enter_watched_region(*call.runtime, region, site);
  }
  return call;
}

inline void end(const Call& call) {
  if (FORKSIGHT_UNLIKELY(call.guard.touch != 0)) forksight::leave_watched_region(call.guard);
}

// Called after an entry that returns inside of the region: the guard is kept until another call ends the region.
inline void pass(const Call& call) {
  if (FORKSIGHT_UNLIKELY(forksight::g_watch_regions)) forksight::enter_split_region(call.guard);
}

template <class... Arguments>
int pause(const Call& call, Arguments... arguments) {
  if (call.function == nullptr) return -1;
  const int result = reinterpret_cast<int (*)(Arguments...)>(call.function)(arguments...);
  const forksight::Slot* const self = forksight::t_slot;
  const bool is_libgomp = call.runtime != nullptr && call.runtime->kind == forksight::trace::RuntimeKind::kLibgomp;
  if (result == 0 && is_libgomp && self != nullptr) forksight::retire_workers(*call.runtime, self->tid);
  return result;
}

}  // namespace

// Defines the hook of an entry that starts a region. All of these entries have (function, data, num_threads) as their
// first parameters.
#define FORKSIGHT_REGION(result_type, keep, leave, give, name, sections, parameters, arguments)             \
  FORKSIGHT_EXPORT_VERSIONED(result_type, name, Body fn, void* data,                                        \
                             unsigned num_threads FORKSIGHT_UNWRAP parameters) {                            \
    const Call call = begin({OmpEntry::name, num_threads, sections}, FORKSIGHT_FRAME().site());             \
    using Function = result_type (*)(Body, void*, unsigned FORKSIGHT_UNWRAP parameters);                    \
    keep reinterpret_cast<Function>(call.function)(fn, data, call.guard.clause FORKSIGHT_UNWRAP arguments); \
    leave(call);                                                                                            \
    give;                                                                                                   \
  }
#define FORKSIGHT_UNWRAP(...) __VA_OPT__(, ) __VA_ARGS__
#define FORKSIGHT_VOID_REGION(name, parameters, arguments) \
  FORKSIGHT_REGION(void, , end, return, name, 0, parameters, arguments)
#define FORKSIGHT_SPLIT_REGION(name, parameters, arguments) \
  FORKSIGHT_REGION(void, , pass, return, name, 0, parameters, arguments)

FORKSIGHT_VOID_REGION(GOMP_parallel, (unsigned flags), (flags))
FORKSIGHT_SPLIT_REGION(GOMP_parallel_start, (), ())
FORKSIGHT_REGION(void, , end, return, GOMP_parallel_sections, count, (unsigned count, unsigned flags), (count, flags))
FORKSIGHT_REGION(void, , pass, return, GOMP_parallel_sections_start, count, (unsigned count), (count))
FORKSIGHT_REGION(unsigned, const unsigned result =, end, return result, GOMP_parallel_reductions, 0, (unsigned flags),
                 (flags))

#define FORKSIGHT_CHUNKED(name)                                                               \
  FORKSIGHT_VOID_REGION(name, (long start, long stop, long step, long chunk, unsigned flags), \
                        (start, stop, step, chunk, flags))
#define FORKSIGHT_UNCHUNKED(name) \
  FORKSIGHT_VOID_REGION(name, (long start, long stop, long step, unsigned flags), (start, stop, step, flags))

FORKSIGHT_CHUNKED(GOMP_parallel_loop_static)
FORKSIGHT_CHUNKED(GOMP_parallel_loop_dynamic)
FORKSIGHT_CHUNKED(GOMP_parallel_loop_guided)
FORKSIGHT_CHUNKED(GOMP_parallel_loop_nonmonotonic_dynamic)
FORKSIGHT_CHUNKED(GOMP_parallel_loop_nonmonotonic_guided)
FORKSIGHT_UNCHUNKED(GOMP_parallel_loop_runtime)
FORKSIGHT_UNCHUNKED(GOMP_parallel_loop_nonmonotonic_runtime)
FORKSIGHT_UNCHUNKED(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

FORKSIGHT_SPLIT_REGION(GOMP_parallel_loop_static_start, (long start, long stop, long step, long chunk),
                       (start, stop, step, chunk))
FORKSIGHT_SPLIT_REGION(GOMP_parallel_loop_dynamic_start, (long start, long stop, long step, long chunk),
                       (start, stop, step, chunk))
FORKSIGHT_SPLIT_REGION(GOMP_parallel_loop_guided_start, (long start, long stop, long step, long chunk),
                       (start, stop, step, chunk))
FORKSIGHT_SPLIT_REGION(GOMP_parallel_loop_runtime_start, (long start, long stop, long step), (start, stop, step))

// Ends a region that one of the functions *_start began.
FORKSIGHT_EXPORT_VERSIONED(void, GOMP_parallel_end, ) {
  const Call call = find(OmpEntry::GOMP_parallel_end, FORKSIGHT_FRAME().site().pc);
  if (FORKSIGHT_UNLIKELY(call.function == nullptr)) __builtin_trap();
  reinterpret_cast<void (*)()>(call.function)();
  if (FORKSIGHT_UNLIKELY(forksight::g_watch_regions)) forksight::leave_split_region();
}

// The program ends the pool itself. Threads of the pool that still exist do not count as a pool that a fork could lose.
// Programs look these functions up with dlsym or as weak symbols. If there is no runtime, or the runtime does not have
// the function, the hook returns -1.
FORKSIGHT_EXPORT_VERSIONED(int, omp_pause_resource_all, int kind) {
  return pause(find(OmpEntry::omp_pause_resource_all, FORKSIGHT_FRAME().site().pc), kind);
}

FORKSIGHT_EXPORT_VERSIONED(int, omp_pause_resource, int kind, int device) {
  return pause(find(OmpEntry::omp_pause_resource, FORKSIGHT_FRAME().site().pc), kind, device);
}
