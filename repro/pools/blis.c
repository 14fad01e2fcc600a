// Mechanism: this build of BLIS uses OpenMP. A product before the fork gives main a pool of libgomp, whose threads the
//            child does not have. The child's product spins inside of a region, and waits for a thread that never
//            comes.
// To blame:  fork() after a parallel region of libgomp in the same thread. Nothing in the program's source shows that
//            it uses OpenMP.
// User sees: the child stops in a matrix product, at 100 % CPU.
// Fix:       set BLIS_NUM_THREADS=1 in the process that forks, or use the pthreads build of BLIS, or use forksight's
//            --omp.
// Repaired:  main computes its first product after the fork.
//
// The pthreads build (variant "pthread") makes new threads for each product. So a fork loses no pool.
// EXPECT-BARE: spin
// EXPECT: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads" library=libgomp.so.1
// EXPECT-STACK: stack multiply@product main@child
// EXPECT-STACK: fork main@fork
// EXPECT-CURED: --omp=rebuild stdout="child: right"
// EXPECT-CURED: --omp=quiesce stdout="child: right"
// EXPECT-WHY: lost-openmp-pool likely hang culprit="libgomp pool of 2 threads" library=libgomp.so.1.0.0
// EXPECT-NONE(pthread)
// EXPECT-BARE(pthread): ok
#include "../baton.h"
#include "asleep_team.h"
#include "blas.h"

enum { kSize = 256 };
static double a[kSize * kSize], b[kSize * kSize], c[kSize * kSize];

__attribute__((noinline)) static int multiply(void) {
  blas_product(kSize, a, b, c);  // MARK: product
  return c[0] == kSize;
}

int main(void) {
  for (int i = 0; i < kSize * kSize; ++i) a[i] = b[i] = 1.0;
#ifndef REPAIRED
  if (!multiply()) return 1;
  await_sleep_of_others();
#endif
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
    const int right = multiply();  // MARK: child
    printf("child: %s\n", right ? "right" : "wrong");
    fflush(stdout);
    _exit(right ? 0 : 1);
  }
  return multiply() ? end_of(child) : 1;
}
