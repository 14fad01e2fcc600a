// Mechanism: FFTW has a worker thread for its plans. The child executes a plan for two threads. The child hands half of
//            the work to a thread that was not copied, and waits for that thread.
// To blame:  the fork between two executions of the plan. FFTW has no atfork handler.
// User sees: the child stops in fftw_execute, at 0 % CPU.
// Fix:       make plans for one thread in the child. Or fork before FFTW starts a thread.
// Repaired:  the child makes a plan of its own for one thread.
//
// EXPECT-BARE: hang
// EXPECT: lost-thread-pool proven/likely hang culprit="FFTW pool of 1 thread" library=libfftw3_threads.so.3 victims=1
// EXPECT-WHY: lost-thread-pool proven/likely hang culprit="FFTW pool of 1 thread" victims=1
// EXPECT-STACK: culprit main@transform
// EXPECT-STACK: fork main@fork
// EXPECT-CORE: lost-thread-pool likely may-hang culprit="FFTW pool of 1 thread"
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
    fftw_execute(plan);
#endif
    _exit(0);
  }
  return end_of(child);
}
