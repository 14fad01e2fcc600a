// Mechanism: a thread is inside of a matrix product when main forks. OpenBLAS has a mutex that lets one product at a
//            time use its pool. The child inherits the mutex in its locked state. The child's own product waits for the
//            thread that holds the mutex, but the child does not have that thread.
// To blame:  the fork during a product of another thread. OpenBLAS's atfork handlers take care of an idle pool only.
// User sees: the child stops in its first product, at 0 % CPU.
// Fix:       use a lock of your own so that no thread forks during a product. Or use one BLAS thread, or exec in the
//            child.
// Repaired:  the worker's product has ended before main forks.
//
// OpenBLAS allocates its work space while it holds the mutex. The program defines malloc() itself, and keeps the worker
// in that function.
// EXPECT-BARE: hang
// EXPECT: lost-blas-pool proven hang culprit="OpenBLAS pool" holder=worker library=libopenblas.so.0 victims=1
// EXPECT-STACK: culprit multiply@product worker_main@work
// EXPECT-STACK: stack multiply@product main@child
// EXPECT-STACK: fork main@fork
// EXPECT-CORE: lost-blas-pool proven hang culprit="OpenBLAS pool"
#include <pthread.h>

#include "../baton.h"
#include "blas.h"

enum { kSize = 512 };
static double a[kSize * kSize], b[kSize * kSize], c[kSize * kSize];
static struct baton is_inside;
static __thread int is_worker;

void* __libc_malloc(size_t bytes);
void* malloc(size_t bytes) {
#ifndef REPAIRED
  if (is_worker) {
    is_worker = 0;
    baton_pass(is_inside);
    park();
  }
#endif
  return __libc_malloc(bytes);
}

__attribute__((noinline)) static int multiply(void) {
  blas_product(kSize, a, b, c);  // MARK: product
  return c[0] == 0.0;
}

static void* worker_main(void* unused) {
  pthread_setname_np(pthread_self(), "worker");
  is_worker = 1;
  multiply();  // MARK: work
  baton_pass(is_inside);
  park();
  return unused;
}

int main(void) {
  pthread_t worker;
  is_inside = baton_make();
  if (!multiply()) return 1;
  pthread_create(&worker, NULL, worker_main, NULL);
  baton_wait(is_inside);
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
    const int right = multiply();  // MARK: child
    _exit(right ? 0 : 1);
  }
  return end_of(child);
}
