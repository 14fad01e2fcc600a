// Mechanism: a parallel region makes a team of two threads. fork() copies libgomp's record of the team, but not the
//            team's worker. The child's region waits for that worker.
// To blame:  fork() after a parallel region of libgomp in the same thread. LLVM's libomp makes a new pool in the child.
// User sees: the child stops at the end of its first parallel region, at 0 % CPU, with part of the work done.
// Fix:       call omp_pause_resource_all(omp_pause_hard) before the fork, fork before any region, or exec in the child.
// Repaired:  the pool is paused before the fork.
//
// EXPECT-BARE: hang
// EXPECT: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads" victims=1
// EXPECT-STACK: culprit sum_in_parallel@region main@parent
// EXPECT-STACK: stack sum_in_parallel@region main@child
// EXPECT-STACK: fork main@fork
// EXPECT-CURED: --omp=quiesce stdout="parent: sum 500500 by 2 threads" stdout="child: sum 500500 by 2 threads"
// EXPECT-CURED: --omp=rebuild stdout="parent: sum 500500 by 2 threads" stdout="child: sum 500500 by 2 threads"
// EXPECT-CURED: --omp=clamp stdout="parent: sum 500500 by 2 threads" stdout="child: sum 500500 by 1 threads"
// EXPECT-CURED: stdout="parent: sum 500500 by 2 threads" stdout="child: sum 500500 by 2 threads"
//
// With OMP_WAIT_POLICY=active the child spins. A spinning process is not proven dead, so the report lists no victims:
// EXPECT-BARE(active): spin
// EXPECT(active): lost-openmp-pool proven hang culprit="libgomp pool of 2 threads"
// EXPECT-STACK(active): culprit sum_in_parallel@region main@parent
// EXPECT-STACK(active): stack sum_in_parallel@region main@child
// EXPECT-CURED(active): --omp=quiesce stdout="child: sum 500500 by 2 threads"
// EXPECT-CURED(active): --omp=rebuild stdout="child: sum 500500 by 2 threads"
//
// The same program on LLVM's runtime. Clang compiled the first two variants. GCC compiled the third, which calls the
// entry points of libgomp that libomp has:
// EXPECT-BARE(libomp): ok
// EXPECT-NONE(libomp)
// EXPECT-BARE(libomp19): ok
// EXPECT-NONE(libomp19)
// EXPECT-BARE(gcc-libomp): ok
// EXPECT-NONE(gcc-libomp)
//
// LLVM's runtime makes the new pool by a fork handler. KMP_INIT_AT_FORK=FALSE turns that handler off. Importing
// scikit-learn sets this variable.
// EXPECT-BARE(libomp-unhandled): hang
// EXPECT(libomp-unhandled): lost-openmp-pool proven/likely hang culprit="LLVM OpenMP pool of 1 thread" victims=1
// EXPECT-WHY(libomp-unhandled): lost-openmp-pool proven/likely hang culprit="LLVM OpenMP pool of 1 thread" victims=1
// EXPECT-CORE(libomp-unhandled): lost-openmp-pool likely may-hang culprit="LLVM OpenMP pool of 1 thread"
// EXPECT-BARE(libomp19-unhandled): hang
// EXPECT(libomp19-unhandled): lost-openmp-pool proven/likely hang culprit="LLVM OpenMP pool of 1 thread" victims=1
// EXPECT-WHY(libomp19-unhandled): lost-openmp-pool proven/likely hang culprit="LLVM OpenMP pool of 1 thread" victims=1
// EXPECT-CORE(libomp19-unhandled): lost-openmp-pool likely may-hang culprit="LLVM OpenMP pool of 1 thread"
// EXPECT-BARE(gcc-libomp-unhandled): hang
// EXPECT(gcc-libomp-unhandled): lost-openmp-pool proven/likely hang culprit="LLVM OpenMP pool of 1 thread" victims=1
// EXPECT-WHY(gcc-libomp-unhandled): lost-openmp-pool proven/likely hang culprit="LLVM OpenMP pool of 1 thread" victims=1
// EXPECT-CORE(gcc-libomp-unhandled): lost-openmp-pool likely may-hang culprit="LLVM OpenMP pool of 1 thread"
// EXPECT-WHY: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads" victims=1
// EXPECT-WHY(active): lost-openmp-pool likely hang culprit="libgomp pool of 2 threads"
#include <omp.h>

#include "../baton.h"

__attribute__((noinline)) static int sum_in_parallel(const char* who) {
  int sum = 0;
  int threads = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)  // MARK: region
  {
#pragma omp master
    threads = omp_get_num_threads();
#pragma omp for
    for (int i = 1; i <= 1000; ++i) sum += i;
  }
  printf("%s: sum %d by %d threads\n", who, sum, threads);
  fflush(stdout);
  return sum == 500500 ? 0 : 1;
}

int main(void) {
  int failed = sum_in_parallel("parent");  // MARK: parent
#ifdef REPAIRED
  omp_pause_resource_all(omp_pause_hard);
#endif
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
    failed = sum_in_parallel("child");  // MARK: child
    _exit(failed);
  }
  return failed != 0 ? failed : end_of(child);
}

// EXPECT-CORE: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads"
// EXPECT-CORE(active): lost-openmp-pool likely hang culprit="libgomp pool of 2 threads"
