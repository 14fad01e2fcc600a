// Mechanism: two threads use two semaphores with the initial value 1 as locks, and take them in opposite orders. In the
//            variant `shared` a process and its child do this instead.
// To blame:  the thread that takes the semaphores in another order than the rest of the program.
// User sees: all threads are asleep, two of them in sem_wait(). The semaphores record no owner.
// Fix:       take the semaphores in one order. Or use mutexes, which record their owner.
// Repaired:  both threads or processes take the semaphores in the same order.
//
// EXPECT-BARE: hang
// EXPECT: deadlock proven/unknown hang culprit="2 threads" victims=0
// EXPECT-WHY: deadlock proven/unknown hang culprit="2 threads" victims=0
// EXPECT-STACK: stack move@second main@forward
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>

#include "../baton.h"

#ifdef SHARED
static const int is_shared = 1;
#else
static const int is_shared = 0;
#endif

struct guards {
  sem_t source, target;
};

static struct guards own;
static struct guards* guards = &own;
static struct baton forward_is_in, backward_is_in;

__attribute__((noinline)) static int move(sem_t* first, sem_t* second, struct baton is_in, struct baton other_is_in) {
  sem_wait(first);
#ifdef REPAIRED
  (void)is_in, (void)other_is_in;
#else
  baton_pass(is_in);
  baton_wait(other_is_in);
#endif
  sem_wait(second);  // MARK: second
  sem_post(second);
  sem_post(first);
  return 0;
}

static void* backward_main(void* unused) {
#ifdef REPAIRED
  move(&guards->source, &guards->target, backward_is_in, forward_is_in);
#else
  move(&guards->target, &guards->source, backward_is_in, forward_is_in);
#endif
  return unused;
}

static int backward_process(void) {
  const pid_t child = fork();
  if (child != 0) return child;
  backward_main(NULL);
  _exit(0);
}

int main(void) {
  pthread_t backward;
  pid_t child = 0;
  if (is_shared) guards = mmap(NULL, sizeof *guards, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  sem_init(&guards->source, is_shared, 1);
  sem_init(&guards->target, is_shared, 1);
  forward_is_in = baton_make();
  backward_is_in = baton_make();
  if (is_shared) {
    child = backward_process();
  } else {
    pthread_create(&backward, NULL, backward_main, NULL);
  }
  move(&guards->source, &guards->target, forward_is_in, backward_is_in);  // MARK: forward
  return is_shared ? end_of(child) : pthread_join(backward, NULL);
}
