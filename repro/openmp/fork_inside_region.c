// Mechanism: the first thread of a team of two forks inside of a parallel region. The child has only this thread, and
//            waits for the other thread at the region's end.
// To blame:  fork() inside of a region. No OpenMP runtime and no cure can help then.
// User sees: the child stops at the closing brace of the region, at 0 % CPU.
// Fix:       fork outside of the region, or call _exit() or exec in the child before the region ends.
// Repaired:  the child calls _exit() inside of the region.
//
// EXPECT-BARE: hang
// EXPECT: fork-inside-parallel-region proven hang victims=1
// EXPECT-STACK: fork main@fork
// EXPECT-RUN: --omp=rebuild outcome=hang status=137 says="inside of a region nothing can be cured"
// EXPECT-RUN: --omp=quiesce outcome=hang status=137 says="inside of a region nothing can be cured"
// EXPECT-RUN: --omp=clamp outcome=hang status=137 says="inside of a region nothing can be cured"
// EXPECT-RUN: --cure=auto outcome=hang status=137 says="inside of a region nothing can be cured"
//
// On LLVM's runtime an assertion of the runtime fails in the child, and the child dies:
// EXPECT-BARE(libomp): error
// EXPECT(libomp): fork-inside-parallel-region likely/proven error victims=0
// EXPECT-BARE(libomp19): error
// EXPECT(libomp19): fork-inside-parallel-region likely/proven error victims=0
//
// EXPECT-WHY: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads"
// EXPECT-CORE: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads"
#include <omp.h>

#include "../baton.h"

int main(void) {
  pid_t child = -1;
  const struct baton is_inside = baton_make();
  const struct baton forked = baton_make();
#pragma omp parallel num_threads(2)  // MARK: region
  {
    if (omp_get_thread_num() == 0) {
      baton_wait(is_inside);
      child = fork();  // MARK: fork
#ifdef REPAIRED
      if (child == 0) _exit(0);
#endif
      if (child != 0) baton_pass(forked);
    } else {
      baton_pass(is_inside);
      baton_wait(forked);
    }
  }
  if (child == 0) _exit(0);
  return end_of(child);
}

// On LLVM's runtime the child has ended, so no core of it can be made:
// EXPECT-CORE(libomp): none
// EXPECT-CORE(libomp19): none
