// Mechanism: this build of OpenBLAS uses OpenMP. A product before the fork gives main a pool of libgomp, whose threads
//            the child does not have. The child's product spins, and waits for a thread that never comes.
// To blame:  fork() after a parallel region of libgomp in the same thread. Nothing in the program's source shows that
//            it uses OpenMP.
// User sees: the child stops in a matrix product, at 100 % CPU.
// Fix:       set OPENBLAS_NUM_THREADS=1 in the process that forks, or use the pthreads build of OpenBLAS, or use
//            forksight's --omp.
// Repaired:  main computes its first product after the fork.
//
// EXPECT-BARE: spin
// EXPECT: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads" library=libgomp.so.1
// EXPECT-STACK: stack multiply@product main@child
// EXPECT-STACK: fork main@fork
// EXPECT-CURED: --omp=rebuild stdout="child: right"
// EXPECT-WHY: lost-openmp-pool likely hang culprit="libgomp pool of 2 threads" library=libgomp.so.1.0.0
// EXPECT-CORE: lost-openmp-pool likely hang culprit="libgomp pool of 2 threads"
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
  if (!multiply()) return 1;  // MARK: first
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
