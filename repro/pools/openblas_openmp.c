// Mechanism: this OpenBLAS computes with OpenMP: a product before the fork leaves main a libgomp pool, which the child
//            has lost. Its product spins for a partner that never comes.
// To blame:  fork() after a parallel region of libgomp in the same thread; nothing in the program says OpenMP.
// User sees: the child stops in a matrix product, at 100 % CPU.
// Fix:       OPENBLAS_NUM_THREADS=1 in the process that forks, the pthreads build of OpenBLAS, or forksight's --omp.
// Repaired:  main makes its first product after the fork.
//
// EXPECT-BARE: spin
// EXPECT: lost-openmp-pool proven hang culprit="libgomp pool of 2 threads" library=libgomp.so.1
// EXPECT-STACK: stack multiply@product main@child
// EXPECT-STACK: fork main@fork
// EXPECT-CURED: --omp=rebuild stdout="child: right"
// EXPECT-WHY: lost-openmp-pool likely hang culprit="libgomp pool of 2 threads" library=libgomp.so.1.0.0
// EXPECT-CORE: lost-openmp-pool likely hang culprit="libgomp pool of 2 threads"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "../baton.h"
#include "blas.h"

enum { kSize = 256 };
static double a[kSize * kSize], b[kSize * kSize], c[kSize * kSize];

__attribute__((noinline)) static int multiply(void) {
  blas_product(kSize, a, b, c);  // MARK: product
  return c[0] == kSize;
}

#ifndef REPAIRED
// Until libgomp's worker sleeps, it has not come to where it waits for the next region, and the child would sleep, too,
// instead of spinning.
static int is_asleep(const char* tid) {
  char path[64], text[256] = "";
  snprintf(path, sizeof path, "/proc/self/task/%s/stat", tid);
  FILE* const file = fopen(path, "r");
  if (file == NULL) abort();
  if (fgets(text, sizeof text, file) == NULL) abort();
  fclose(file);
  return strrchr(text, ')')[2] == 'S';
}

static void await_sleep_of_others(void) {
  for (int awake = 1; awake > 0;) {
    DIR* const tasks = opendir("/proc/self/task");
    awake = 0;
    for (struct dirent* entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
      if (atoi(entry->d_name) > 0 && atoi(entry->d_name) != getpid() && !is_asleep(entry->d_name)) ++awake;
    }
    closedir(tasks);
  }
}
#endif

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
