// Mechanism: the program calls vfork() while it holds the lock of its registry. The child runs in the same memory, and
//            looks something up in the registry before it execs. The child waits for a lock that its parent's thread
//            holds. That thread sleeps in vfork() until the child execs.
//            -DPIPE:    the child waits for a message that its parent should send after vfork().
//            -DEVENT:   the child waits on a futex that no thread wakes.
// To blame:  a child of vfork() that does more than exec or _exit().
// User sees: parent and child stop, at 0 % CPU. The parent is in state D, and a debugger cannot attach to the parent.
// Fix:       prepare everything before vfork(), or use posix_spawn().
// Repaired:  the program looks the entry up before vfork(), and the child only execs.
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
