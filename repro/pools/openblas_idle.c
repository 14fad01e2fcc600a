// Mechanism: none. OpenBLAS has a pool of threads, which is idle at the fork. Its prepare handler ends the pool. Parent
//            and child each make a new one at their next call.
// To blame:  nobody.
// User sees: nothing, and must not see a warning.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
#include "../baton.h"
#include "blas.h"

enum { kSize = 256 };
static double a[kSize * kSize], b[kSize * kSize], c[kSize * kSize];

static int multiply(void) {
  for (int i = 0; i < kSize * kSize; ++i) a[i] = b[i] = 1.0;
  blas_product(kSize, a, b, c);
  return c[0] == kSize && c[kSize * kSize - 1] == kSize;
}

int main(void) {
  if (!multiply()) return 1;
  const pid_t child = fork();
  if (child == 0) _exit(multiply() ? 0 : 1);
  return multiply() ? end_of(child) : 1;
}
