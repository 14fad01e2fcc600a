// Mechanism: the program calls vfork() with the lock of its registry held. The child, which runs in the same memory,
//            looks something up there first: it waits for the thread that sleeps in vfork() until the child execs. With
//            -DPIPE it waits for a message that its parent is to send after vfork(); with -DEVENT for a wake-up by
//            nobody.
// To blame:  a child of vfork() that does more than exec or _exit().
// User sees: parent and child stop, 0 % CPU; the parent is in state D and cannot be attached to.
// Fix:       prepare everything before vfork(), or posix_spawn().
// Repaired:  the look-up is made before vfork(), the child execs.
//
// EXPECT-BARE: hang
// EXPECT: vfork-misuse proven hang lock=registry holder=parent victims=0
// EXPECT(pipe): vfork-misuse proven hang holder=parent victims=0
// EXPECT(event): vfork-misuse proven hang holder=parent victims=1
#include <pthread.h>

#include "../baton.h"

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static struct baton message;
static int event;

__attribute__((noinline)) static int look_up(void) {
#if defined(PIPE)
  baton_wait(message);
#elif defined(EVENT)
  while (event == 0) syscall(SYS_futex, &event, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
#else
  pthread_mutex_lock(&registry);
  ++event;
  pthread_mutex_unlock(&registry);
#endif
  return event;
}

int main(void) {
  pthread_setname_np(pthread_self(), "parent");
  message = baton_make();
  pthread_mutex_lock(&registry);
#ifdef REPAIRED
  pthread_mutex_unlock(&registry);
  look_up();
#endif
  const pid_t child = vfork();
  if (child == 0) {
#ifndef REPAIRED
    look_up();
#endif
    execl("/bin/true", "true", (char*)NULL);
    _exit(127);
  }
  return end_of(child);
}
