/* Parallel regions of libgomp. For the regions in this file the compiler generates calls of some entry points. The
 * probe itself calls the other entry points. Some of these are called only by code that an old compiler has made.
 *
 * FLAGS: -fopenmp -O2
 * ENV: FORKSIGHT_OMP=observe,clamp,quiesce,rebuild,auto
 */
#include "probe.h"

#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef void (*Body)(void*);
typedef _Bool (*Next)(long*, long*);
extern void GOMP_parallel_start(Body, void*, unsigned);
extern void GOMP_parallel_end(void);
extern void GOMP_parallel_sections_start(Body, void*, unsigned, unsigned);
extern unsigned GOMP_sections_next(void);
extern void GOMP_sections_end_nowait(void);
extern void GOMP_loop_end_nowait(void);
#define LOOP(name)                                                                                \
  extern void GOMP_parallel_loop_##name(Body, void*, unsigned, long, long, long, long, unsigned); \
  extern _Bool GOMP_loop_##name##_next(long*, long*);
#define LOOP_RUNTIME(name)                                                                  \
  extern void GOMP_parallel_loop_##name(Body, void*, unsigned, long, long, long, unsigned); \
  extern _Bool GOMP_loop_##name##_next(long*, long*);
LOOP(static)
LOOP(dynamic)
LOOP(guided)
LOOP(nonmonotonic_dynamic)
LOOP(nonmonotonic_guided)
LOOP_RUNTIME(runtime)
LOOP_RUNTIME(nonmonotonic_runtime)
LOOP_RUNTIME(maybe_nonmonotonic_runtime)
extern void GOMP_parallel_loop_static_start(Body, void*, unsigned, long, long, long, long);
extern void GOMP_parallel_loop_dynamic_start(Body, void*, unsigned, long, long, long, long);
extern void GOMP_parallel_loop_guided_start(Body, void*, unsigned, long, long, long, long);
extern void GOMP_parallel_loop_runtime_start(Body, void*, unsigned, long, long, long);

enum { kTeam = 3, kCount = 100 };

/* libgomp needs more stack in the master of a team than the smallest stack has. */
enum { WHERE = ANYWHERE & ~IN_SMALL_THREAD };

static atomic_int g_entered;
static atomic_long g_sum;

static void begin(void) {
  atomic_store(&g_entered, 0);
  atomic_store(&g_sum, 0);
  errno = kSentinel;
}
static void conclude(const char* what) {
  const int error = errno;
  say("%s: team %d, sum %ld, errno %d", what, atomic_load(&g_entered), atomic_load(&g_sum), error);
}

PROBE_IN(compiled, WHERE) {
  begin();
#pragma omp parallel num_threads(kTeam)
  {
    atomic_fetch_add(&g_entered, 1);
    atomic_fetch_add(&g_sum, omp_get_thread_num());
  }
  conclude("parallel");
  begin();
#pragma omp parallel sections num_threads(kTeam)
  {
#pragma omp section
    atomic_fetch_add(&g_sum, 1);
#pragma omp section
    atomic_fetch_add(&g_sum, 10);
#pragma omp section
    atomic_fetch_add(&g_sum, 100);
  }
  conclude("sections");
  long sum = 0;
  begin();
#pragma omp parallel for num_threads(kTeam) schedule(dynamic, 3) reduction(+ : sum)
  for (long i = 0; i < kCount; ++i) sum += i;
  atomic_store(&g_sum, sum);
  conclude("dynamic loop");
  sum = 0;
  begin();
#pragma omp parallel num_threads(kTeam) reduction(task, + : sum)
  {
#pragma omp task in_reduction(+ : sum)
    sum += 1;
    atomic_fetch_add(&g_entered, 1);
  }
  atomic_store(&g_sum, sum);
  conclude("task reduction");
  begin();
#pragma omp parallel if (0)
  atomic_fetch_add(&g_entered, omp_get_num_threads());
  conclude("serialised");
  begin();
#pragma omp parallel num_threads(2)
#pragma omp parallel num_threads(2)
  atomic_fetch_add(&g_entered, 1);
  conclude("nested");
}

static void enter(void* unused) {
  (void)unused;
  atomic_fetch_add(&g_entered, 1);
}
static void take_sections(void* unused) {
  enter(unused);
  for (unsigned section = GOMP_sections_next(); section != 0; section = GOMP_sections_next()) {
    atomic_fetch_add(&g_sum, (long)section);
  }
  GOMP_sections_end_nowait();
}
struct Loop {
  Next next;
};
static void take_part(void* loop) {
  long first = 0;
  long end = 0;
  enter(NULL);
  while (((const struct Loop*)loop)->next(&first, &end)) {
    for (long i = first; i < end; ++i) atomic_fetch_add(&g_sum, i);
  }
  GOMP_loop_end_nowait();
}

PROBE_IN(by_hand, WHERE) {
  begin();
  GOMP_parallel_start(enter, NULL, kTeam);
  enter(NULL);
  GOMP_parallel_end();
  conclude("GOMP_parallel_start");
  begin();
  GOMP_parallel_sections_start(take_sections, NULL, kTeam, 4);
  take_sections(NULL);
  GOMP_parallel_end();
  conclude("GOMP_parallel_sections_start");
}

#define SHOW_LOOP(name, ...)                                                                        \
  do {                                                                                              \
    struct Loop loop = {GOMP_loop_##name##_next};                                                   \
    begin();                                                                                        \
    GOMP_parallel_loop_##name(take_part, &loop, kTeam, 0, kCount, 1 __VA_OPT__(, ) __VA_ARGS__, 0); \
    conclude(#name);                                                                                \
  } while (0)
#define SHOW_OLD_LOOP(name, ...)                                                                         \
  do {                                                                                                   \
    struct Loop loop = {GOMP_loop_##name##_next};                                                        \
    begin();                                                                                             \
    GOMP_parallel_loop_##name##_start(take_part, &loop, kTeam, 0, kCount, 1 __VA_OPT__(, ) __VA_ARGS__); \
    take_part(&loop);                                                                                    \
    GOMP_parallel_end();                                                                                 \
    conclude(#name "_start");                                                                            \
  } while (0)

PROBE_IN(loops, WHERE) {
  SHOW_LOOP(static, 5);
  SHOW_LOOP(dynamic, 5);
  SHOW_LOOP(guided, 5);
  SHOW_LOOP(nonmonotonic_dynamic, 5);
  SHOW_LOOP(nonmonotonic_guided, 5);
  SHOW_LOOP(runtime);
  SHOW_LOOP(nonmonotonic_runtime);
  SHOW_LOOP(maybe_nonmonotonic_runtime);
  SHOW_OLD_LOOP(static, 5);
  SHOW_OLD_LOOP(dynamic, 5);
  SHOW_OLD_LOOP(guided, 5);
  SHOW_OLD_LOOP(runtime);
}

static void use_team(void) {
  begin();
#pragma omp parallel num_threads(kTeam)
  atomic_fetch_add(&g_entered, 1);
  conclude("parallel");
}
static void use_no_region(void) { say("  max threads %d, level %d", omp_get_max_threads() > 0, omp_get_level()); }

/* A process with a pool forks, and its child does not use the pool. With each policy of the shim the output must be the
 * same as without the shim. The pool belongs to a thread that ends, so the pool does not affect other probes. */
static void fork_with_pool(void) {
  omp_set_num_threads(2);
  use_team();
  in_child(use_no_region);
  say("  max threads %d", omp_get_max_threads());
  use_team();
}
PROBE_IN(forks, WHERE) { in_thread(fork_with_pool); }

/* The program ends its pool itself. The next region makes another pool. */
static void pause_pool(void) {
  use_team();
  say("  pause %d, errno %d", omp_pause_resource_all(omp_pause_hard), errno);
  use_team();
  say("  pause of the host %d", omp_pause_resource(omp_pause_soft, omp_get_initial_device()));
  say("  pause of no device %d", omp_pause_resource(omp_pause_hard, 1000));
  use_team();
#pragma omp parallel num_threads(kTeam)
#pragma omp master
  say("  pause inside of a region %d", omp_pause_resource_all(omp_pause_hard));
}
PROBE_IN(pauses, WHERE) { in_thread(pause_pool); }
