// Mechanism: none. libgomp is linked into the program, which exports libgomp's symbols. The thread-local variables of
//            both lie in one block. If a cure reset that block, it would also reset the program's own variables.
// To blame:  nobody. Variant "region": the child starts a region, so fork() after a parallel region is to blame.
// User sees: nothing, and must not see a warning. The child's own thread-local variables have the values that the
//            parent set.
// Fix:       none needed. Variant "region": call omp_pause_resource_all(omp_pause_hard) before the fork.
//
// EXPECT-BARE: ok
// EXPECT-NONE
// EXPECT-RUN: --omp=auto outcome=none status=0
// EXPECT-RUN: --omp=rebuild outcome=none status=0
// EXPECT-RUN: --omp=quiesce outcome=none status=0
// EXPECT-RUN: --omp=clamp outcome=none status=0
// EXPECT-BARE(region): hang
// EXPECT(region): lost-wakeup proven/possible hang culprit="2 lost threads" victims=1
// EXPECT-WHY(region): lost-wakeup proven/possible hang culprit="2 lost threads" victims=1
// EXPECT-RUN(region): --omp=auto outcome=none status=0
// EXPECT-RUN(region): --omp=quiesce outcome=none status=0
#include <omp.h>

#include "../baton.h"

static __thread int set_by_parent = 42;
static __thread int zero_at_first;

__attribute__((noinline)) static int count_threads(void) {
  int threads = 0;
#pragma omp parallel num_threads(3)
  {
#pragma omp atomic
    ++threads;
  }
  return threads;
}

int main(void) {
  set_by_parent = omp_get_max_threads() > 0 ? 7 : 8;
  zero_at_first = 9;
  if (count_threads() != 3) return 1;
  const pid_t child = fork();
  if (child == 0) {
    int right = set_by_parent == 7 && zero_at_first == 9;
#ifdef REGION
    right = right && count_threads() == 3;
#endif
    _exit(right ? 0 : 1);
  }
  return end_of(child);
}
