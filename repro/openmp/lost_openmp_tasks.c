// Mechanism: a team of two threads runs tasks. The child asks for such a team again, but fork() has copied only one
//            thread of the team. This thread waits for the other one at the barrier where all tasks must be complete.
// To blame:  fork() after a parallel region of libgomp in the same thread.
// User sees: the child stops with some of its tasks done, at 0 % CPU.
// Fix:       call omp_pause_resource_all(omp_pause_hard) before the fork, or fork first.
// Repaired:  the child asks for a team of one thread. This thread waits for no other.
//
// EXPECT-BARE: hang
// EXPECT: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads" victims=1
// EXPECT-STACK: stack sum_by_tasks@region main@child
// EXPECT-STACK: fork main@fork
// EXPECT-CURED: --omp=quiesce stdout="parent: 5050" stdout="child: 5050"
// EXPECT-CURED: --omp=rebuild stdout="parent: 5050" stdout="child: 5050"
// EXPECT-CURED: --omp=clamp stdout="parent: 5050" stdout="child: 5050"
// EXPECT-CORE: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads"
//
// LLVM's runtime makes a new pool in the child:
// EXPECT-BARE(libomp): ok
// EXPECT-NONE(libomp)
// EXPECT-BARE(libomp19): ok
// EXPECT-NONE(libomp19)
#include <omp.h>

#include "../baton.h"

__attribute__((noinline)) static int sum_by_tasks(const char* who, int threads) {
  int sum = 0;
#pragma omp parallel num_threads(threads)  // MARK: region
#pragma omp single
  for (int i = 1; i <= 100; ++i) {
#pragma omp task
#pragma omp atomic
    sum += i;
  }
  printf("%s: %d\n", who, sum);
  fflush(stdout);
  return sum == 5050 ? 0 : 1;
}

int main(void) {
#ifdef REPAIRED
  const int in_child = 1;
#else
  const int in_child = 2;
#endif
  int failed = sum_by_tasks("parent", 2);
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
    failed = sum_by_tasks("child", in_child);  // MARK: child
    _exit(failed);
  }
  return failed | end_of(child);
}
