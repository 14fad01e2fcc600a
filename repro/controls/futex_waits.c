// Mechanism: none. A forked child lost a thread, and waits on futexes. All of these waits end. One wait has a deadline.
//            One wait expects another value than the futex has, so it returns at once. The parent ends the wait on a
//            futex that it shares with the child. A thread of the child ends the last wait.
// To blame:  nobody.
// User sees: nothing, and must not see a warning.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>

#include "../baton.h"

static struct baton idler_runs;
static atomic_int ours;

static long wait_while(atomic_int* word, int flags, int value, const struct timespec* timeout) {
  return syscall(SYS_futex, word, FUTEX_WAIT | flags, value, timeout, NULL, 0);
}

static void set(atomic_int* word, int flags) {
  atomic_store(word, 1);
  syscall(SYS_futex, word, FUTEX_WAKE | flags, 1, NULL, NULL, 0);
}

static void* idler_main(void* unused) {
  baton_pass(idler_runs);
  park();
  return unused;
}

static void* setter_main(void* unused) {
  set(&ours, FUTEX_PRIVATE_FLAG);
  return unused;
}

static int use_futexes(atomic_int* shared) {
  const struct timespec moment = {.tv_nsec = 1000000};
  atomic_int never = 0;
  if (wait_while(&never, FUTEX_PRIVATE_FLAG, 0, &moment) != -1 || errno != ETIMEDOUT) return 1;
  if (wait_while(&never, FUTEX_PRIVATE_FLAG, 1, NULL) != -1 || errno != EAGAIN) return 2;
  while (atomic_load(shared) == 0) wait_while(shared, 0, 0, NULL);
  pthread_t setter;
  if (pthread_create(&setter, NULL, setter_main, NULL) != 0) return 3;
  while (atomic_load(&ours) == 0) wait_while(&ours, FUTEX_PRIVATE_FLAG, 0, NULL);
  return pthread_join(setter, NULL) == 0 ? 0 : 4;
}

int main(void) {
  pthread_t idler;
  idler_runs = baton_make();
  atomic_int* const shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED || pthread_create(&idler, NULL, idler_main, NULL) != 0) return 1;
  baton_wait(idler_runs);
  const pid_t child = fork();
  if (child == 0) _exit(use_futexes(shared));
  set(shared, 0);
  return end_of(child);
}
