// Mechanism: none. LLVM's runtime rebuilds its pool in the child by a fork handler of its own. If the pool was paused
//            before the fork, the runtime aborts the child. So no cure may touch this pool, whatever the policy is.
// To blame:  nobody.
// User sees: nothing, and must not see a warning.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
// EXPECT-CURED: --omp=quiesce stdout="parent: 4 threads" stdout="child: 4 threads" stdout="again: 4 threads"
// EXPECT-CURED: --omp=rebuild stdout="parent: 4 threads" stdout="child: 4 threads" stdout="again: 4 threads"
// EXPECT-CURED: --omp=clamp stdout="parent: 4 threads" stdout="child: 4 threads" stdout="again: 4 threads"
// EXPECT-CURED: --cure=auto stdout="parent: 4 threads" stdout="child: 4 threads" stdout="again: 4 threads"
#include <omp.h>

#include "../baton.h"

__attribute__((noinline)) static int count_threads(const char* who) {
  int threads = 0;
#pragma omp parallel num_threads(4)
  {
#pragma omp atomic
    ++threads;
  }
  printf("%s: %d threads\n", who, threads);
  fflush(stdout);
  return threads == 4 ? 0 : 1;
}

int main(void) {
  omp_set_dynamic(0);
  int failed = count_threads("parent");
  const pid_t child = fork();
  if (child == 0) _exit(count_threads("child"));
  failed |= end_of(child);
  return count_threads("again") | failed;
}
