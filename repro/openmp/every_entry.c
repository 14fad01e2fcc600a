// Mechanism: as in lost_openmp_pool.c. Each variant starts the team by a different function of libgomp. Some of these
//            functions also begin a loop, sections or a reduction. One function starts a league of teams on the host.
//            Code of an old GCC makes two-step calls: it calls GOMP_..._start, does its own share of the work, and
//            then calls GOMP_parallel_end.
// To blame:  fork() after a parallel region of libgomp in the same thread.
// User sees: the child stops at the end of its first parallel region, at 0 % CPU.
// Fix:       call omp_pause_resource_all(omp_pause_hard) before the fork, fork before any region, or exec in the child.
// Repaired:  the pool is paused before the fork.
//
// EXPECT-BARE: hang
// EXPECT: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads" victims=1
// EXPECT-STACK: fork main@fork
// EXPECT-CURED: --omp=quiesce stdout="parent: sum 5050 by 2 threads" stdout="child: sum 5050 by 2 threads"
// EXPECT-CURED: --omp=rebuild stdout="parent: sum 5050 by 2 threads" stdout="child: sum 5050 by 2 threads"
// EXPECT-CURED: --omp=clamp stdout="parent: sum 5050 by 2 threads" stdout="child: sum 5050 by 1 threads"
// EXPECT-CURED: --cure=auto stdout="parent: sum 5050 by 2 threads" stdout="child: sum 5050 by 2 threads"
// EXPECT-CURED(repaired): --cure=auto stdout="child: sum 5050 by 2 threads"
#include <omp.h>
#include <stdbool.h>

#include "../baton.h"

// libgomp's interface to compiled code (libgomp/libgomp_g.h). The installed compiler emits calls of only some of
// these functions.
bool GOMP_loop_static_next(long*, long*);
bool GOMP_loop_dynamic_next(long*, long*);
bool GOMP_loop_guided_next(long*, long*);
bool GOMP_loop_runtime_next(long*, long*);
bool GOMP_loop_nonmonotonic_dynamic_next(long*, long*);
bool GOMP_loop_nonmonotonic_guided_next(long*, long*);
bool GOMP_loop_nonmonotonic_runtime_next(long*, long*);
bool GOMP_loop_maybe_nonmonotonic_runtime_next(long*, long*);
void GOMP_loop_end_nowait(void);
unsigned GOMP_sections_next(void);
void GOMP_sections_end_nowait(void);
void GOMP_parallel_end(void);
enum { kThreads = 2, kLast = 100, kChunk = 10 };
static long sum;
static int threads;

static void add(long from, long to) {
  long mine = 0;
  for (long i = from; i < to; ++i) mine += i;
  __atomic_fetch_add(&sum, mine, __ATOMIC_SEQ_CST);
}

#if defined NEXT  // a combined loop
static void work(void* unused) {
  (void)unused;
  if (omp_get_thread_num() == 0) threads = omp_get_num_threads();
  long from;
  long to;
  while (NEXT(&from, &to)) add(from, to);
  GOMP_loop_end_nowait();
}
#elif defined SECTIONS
static void work(void* unused) {
  (void)unused;
  if (omp_get_thread_num() == 0) threads = omp_get_num_threads();
  for (unsigned section; (section = GOMP_sections_next()) != 0;) {
    add(section == 1 ? 0 : kLast / 2, section == 1 ? kLast / 2 : kLast + 1);
  }
  GOMP_sections_end_nowait();
}
#elif !defined REDUCTIONS
static void work(void* unused) {
  (void)unused;
  if (omp_get_thread_num() == 0) threads = omp_get_num_threads();
  for (long at = omp_get_thread_num(); at <= kLast; at += omp_get_num_threads()) add(at, at + 1);
}
#endif

// The first functions of the two-step calls (GOMP_..._start) have no parameter for flags.
#ifdef START
#define FLAGS_TYPE
#define FLAGS
#else
#define FLAGS_TYPE , unsigned
#define FLAGS , 0U
#endif
#if defined NEXT && defined CHUNKED
void ENTRY(void (*)(void*), void*, unsigned, long, long, long, long FLAGS_TYPE);
#define CALL ENTRY(work, NULL, kThreads, 0, kLast + 1, 1, kChunk FLAGS)
#elif defined NEXT
void ENTRY(void (*)(void*), void*, unsigned, long, long, long FLAGS_TYPE);
#define CALL ENTRY(work, NULL, kThreads, 0, kLast + 1, 1 FLAGS)
#elif defined SECTIONS
void ENTRY(void (*)(void*), void*, unsigned, unsigned FLAGS_TYPE);
#define CALL ENTRY(work, NULL, kThreads, 2 FLAGS)
#elif !defined TEAMS && !defined REDUCTIONS
void ENTRY(void (*)(void*), void*, unsigned FLAGS_TYPE);
#define CALL ENTRY(work, NULL, kThreads FLAGS)
#endif

static int run(const char* who) {
  sum = 0;
  threads = 0;
#if defined TEAMS
#pragma omp teams num_teams(1) thread_limit(kThreads)
  {
#pragma omp parallel num_threads(8)
    work(NULL);
  }
#elif defined REDUCTIONS
  long total = 0;
#pragma omp parallel num_threads(kThreads) reduction(task, + : total)
  {
    const int number = omp_get_thread_num();
    if (number == 0) threads = omp_get_num_threads();
    for (long at = number; at <= kLast; at += omp_get_num_threads(), ++total) add(at, at + 1);
  }
  if (total != kLast + 1) return 1;
#else
  CALL;
#ifdef START
  work(NULL);
  GOMP_parallel_end();
#endif
#endif
  printf("%s: sum %ld by %d threads\n", who, sum, threads);
  fflush(stdout);
  return sum == kLast * (kLast + 1) / 2 ? 0 : 1;
}

int main(void) {
  int failed = run("parent");
#ifdef REPAIRED
  omp_pause_resource_all(omp_pause_hard);
#endif
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
    failed = run("child");
    _exit(failed);
  }
  return failed != 0 ? failed : end_of(child);
}
