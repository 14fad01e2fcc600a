// Mechanism: FFTW's OpenMP build runs a plan for two threads as a parallel region of libgomp. The child executes the
//            plan again, and waits for a worker that was not copied.
// To blame:  the fork between two executions of the plan. Neither FFTW nor libgomp has an atfork handler.
// User sees: the child stops in fftw_execute, at 0 % CPU.
// Fix:       make plans for one thread in the child, or use --omp=rebuild.
// Repaired:  the child makes a plan of its own for one thread.
//
// EXPECT-BARE: hang
// EXPECT: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads" library=libgomp.so.1 victims=1
// EXPECT-STACK: stack main@again
// EXPECT-STACK: culprit main@transform
// EXPECT-STACK: fork main@fork
// EXPECT-CORE: lost-openmp-pool proven hang
// EXPECT-CURED: --omp=rebuild stdout="child: transformed"
// EXPECT-CURED: --omp=quiesce stdout="child: transformed"
#include <fftw3.h>

#include "../baton.h"

enum { kPoints = 1 << 16 };

int main(void) {
  if (fftw_init_threads() == 0) return 1;
  fftw_plan_with_nthreads(2);
  fftw_complex* const in = fftw_alloc_complex(kPoints);
  fftw_complex* const out = fftw_alloc_complex(kPoints);
  const fftw_plan plan = fftw_plan_dft_1d(kPoints, in, out, FFTW_FORWARD, FFTW_ESTIMATE);
  fftw_execute(plan);          // MARK: transform
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
#ifdef REPAIRED
    fftw_plan_with_nthreads(1);
    fftw_execute(fftw_plan_dft_1d(kPoints, in, out, FFTW_FORWARD, FFTW_ESTIMATE));
#else
    fftw_execute(plan);  // MARK: again
#endif
    puts("child: transformed");
    fflush(stdout);
    _exit(0);
  }
  return end_of(child);
}
