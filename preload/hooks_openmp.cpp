// The entry points through which compiled code starts a parallel region on libgomp (GCC 12's libgomp.map), and on
// LLVM's runtime, which has them too. In a process that is no watched child each is one look-up and a call.
#include "next.hpp"
#include "omp_policy.hpp"
#include "runtimes.hpp"
#include "site.hpp"
#include "sys.hpp"

#include "guest.hpp"

namespace {

using forksight::OmpEntry;

using Body = void (*)(void*);

struct Call {
  void* function;
  forksight::RegionGuard guard;
};

// Which runtime serves this caller, and with which num_threads it may be asked.
inline Call begin(const forksight::Region& region, const forksight::Site& site) {
  forksight::initialise();
  forksight::Runtime* runtime = forksight::runtime_of_caller(site.pc);
  const std::uint64_t function = runtime != nullptr ? forksight::entry_of(*runtime, region.entry) : 0;
  // Bound to a runtime that has since been unloaded, or that never had this entry: the loader would have refused.
  if (FORKSIGHT_UNLIKELY(function == 0)) __builtin_trap();
  Call call{reinterpret_cast<void*>(function), {0, region.clause}};
  if (FORKSIGHT_UNLIKELY(forksight::g_watch_regions)) {
    call.guard = forksight::enter_watched_region(*runtime, region, site);
  }
  return call;
}

inline void end(const Call& call) {
  if (FORKSIGHT_UNLIKELY(call.guard.touch != 0)) forksight::leave_watched_region(call.guard);
}

}  // namespace

// All have (function, data, num_threads) in front.
#define FORKSIGHT_REGION(result_type, keep, give, name, sections, parameters, arguments)                       \
  FORKSIGHT_EXPORT(result_type, name, Body fn, void* data, unsigned num_threads FORKSIGHT_UNWRAP parameters) { \
    const Call call = begin({OmpEntry::name, num_threads, sections}, FORKSIGHT_FRAME().site());                \
    using Function = result_type (*)(Body, void*, unsigned FORKSIGHT_UNWRAP parameters);                       \
    keep reinterpret_cast<Function>(call.function)(fn, data, call.guard.clause FORKSIGHT_UNWRAP arguments);    \
    end(call);                                                                                                 \
    give;                                                                                                      \
  }
#define FORKSIGHT_UNWRAP(...) __VA_OPT__(, ) __VA_ARGS__
#define FORKSIGHT_VOID_REGION(name, parameters, arguments) \
  FORKSIGHT_REGION(void, , return, name, 0, parameters, arguments)

FORKSIGHT_VOID_REGION(GOMP_parallel, (unsigned flags), (flags))
FORKSIGHT_VOID_REGION(GOMP_parallel_start, (), ())
FORKSIGHT_REGION(void, , return, GOMP_parallel_sections, count, (unsigned count, unsigned flags), (count, flags))
FORKSIGHT_REGION(void, , return, GOMP_parallel_sections_start, count, (unsigned count), (count))
FORKSIGHT_REGION(unsigned, const unsigned result =, return result, GOMP_parallel_reductions, 0, (unsigned flags),
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

FORKSIGHT_VOID_REGION(GOMP_parallel_loop_static_start, (long start, long stop, long step, long chunk),
                      (start, stop, step, chunk))
FORKSIGHT_VOID_REGION(GOMP_parallel_loop_dynamic_start, (long start, long stop, long step, long chunk),
                      (start, stop, step, chunk))
FORKSIGHT_VOID_REGION(GOMP_parallel_loop_guided_start, (long start, long stop, long step, long chunk),
                      (start, stop, step, chunk))
FORKSIGHT_VOID_REGION(GOMP_parallel_loop_runtime_start, (long start, long stop, long step), (start, stop, step))
