// Mechanism: the cure for libgomp (a pause before the fork) breaks LLVM's runtime. When the child starts its first
//            region, the runtime finds its own settings reset, and aborts (LLVM 14).
// To blame:  omp_pause_resource_all(omp_pause_hard) before a fork, in a program that may run on LLVM's runtime.
// User sees: "OMP: Error #13: Assertion failure" and SIGABRT in the child.
// Fix:       pause libgomp only. LLVM's runtime itself makes a new pool in the child.
// Repaired:  the program pauses nothing.
//
// The runtime itself prints that it aborts. Neither the memory nor the recorded calls show the cause, so there is no
// finding.
// EXPECT-BARE: error
// EXPECT-NONE
#include <omp.h>

#include "../baton.h"

__attribute__((noinline)) static int count_threads(void) {
  int threads = 0;
#pragma omp parallel num_threads(4)
  {
#pragma omp atomic
    ++threads;
  }
  return threads;
}

int main(void) {
  if (count_threads() != 4) return 2;
#ifndef REPAIRED
  omp_pause_resource_all(omp_pause_hard);
#endif
  const pid_t child = fork();
  if (child == 0) _exit(count_threads() == 4 ? 0 : 1);
  return end_of(child);
}
