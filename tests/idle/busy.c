// busy NAME: a healthy process whose forked child works without a pause. The child has lost a thread of its parent. The
// program writes a byte after the fork, and ends when it reads a byte.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef WITH_BLAS
void cblas_dgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha, const double* a,
                 int lda, const double* b, int ldb, double beta, double* c, int ldc);
void openblas_set_num_threads(int threads);
#endif

static volatile int* is_over;  // points to memory that parent and child share
static pthread_spinlock_t lock;
static volatile double sum;

static void* idle(void* nothing) {
  for (;;) pause();
  return nothing;
}

static void start(void* (*routine)(void*)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, routine, NULL) != 0) _exit(3);
}

static void* add_under_lock(void* nothing) {
  while (!*is_over) {
    pthread_spin_lock(&lock);
    for (int i = 0; i < 50; ++i) sum += i;
    pthread_spin_unlock(&lock);
  }
  return nothing;
}

static void share_spinlock(void) {
  start(add_under_lock);
  start(add_under_lock);
  add_under_lock(NULL);
}

static void compute(void) {
  while (!*is_over) sum = sum * 0.5 + 1;
}

static void nothing_before(void) {}

#ifdef WITH_BLAS
enum { kSize = 300 };
static double a[kSize * kSize], b[kSize * kSize], c[kSize * kSize];

static void multiply(void) { cblas_dgemm(101, 111, 111, kSize, kSize, kSize, 1, a, kSize, b, kSize, 0, c, kSize); }

static void multiply_alone(void) {
  openblas_set_num_threads(1);
  while (!*is_over) multiply();
}
#endif

static const struct {
  const char* name;
  void (*before)(void);
  void (*work)(void);
} kKinds[] = {
    {"spinlock", nothing_before, share_spinlock},
    {"compute", nothing_before, compute},
#ifdef WITH_BLAS
    {"blas", multiply, multiply_alone},
#endif
};

int main(int argc, char** argv) {
  is_over = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
  for (size_t i = 0; argc > 1 && i < sizeof kKinds / sizeof kKinds[0]; ++i) {
    if (strcmp(argv[1], kKinds[i].name) != 0) continue;
    kKinds[i].before();
    start(idle);
    const pid_t child = fork();
    if (child == 0) {
      kKinds[i].work();
      _exit(7);
    }
    char byte = 'x';
    int status = 0;
    if (write(STDOUT_FILENO, &byte, 1) != 1 || read(STDIN_FILENO, &byte, 1) != 1) return 3;
    *is_over = 1;
    if (waitpid(child, &status, 0) != child) return 3;
    printf("%d 0\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return 0;
  }
  return 2;
}
