// Mechanism: a program becomes a daemon while it has one thread. Later the daemon's main thread holds a lock while a
//            worker thread forks. The child waits for that lock. The daemon's main thread has another id than the
//            thread that began the program.
// To blame:  the worker's fork, in a process with another thread that holds locks.
// User sees: a daemon whose children stop at their first use of the queue. In the foreground the program hangs in the
//            same way, and the hang is easier to see.
// Fix:       hold the lock in the forking thread, by pthread_atfork(), or exec in the child.
// Repaired:  the main thread unlocks the mutex before the worker forks.
//
// EXPECT-BARE: hang
// EXPECT: orphaned-mutex proven hang lock=queue_mutex victims=2
// EXPECT-STACK: culprit fill_queue@acquire main@fill
// EXPECT-STACK: stack take_from_queue@touch worker_main@child
// EXPECT-CURED: --on-orphan=recover stdout="child: went on"
#include <pthread.h>
#include <sys/prctl.h>

#include "../baton.h"

static pthread_mutex_t queue_mutex = PTHREAD_MUTEX_INITIALIZER;
static int items = 0;
static struct baton main_holds_it;

__attribute__((noinline)) static int take_from_queue(void) {
  pthread_mutex_lock(&queue_mutex);  // MARK: touch
  const int taken = --items;
  pthread_mutex_unlock(&queue_mutex);
  return taken;
}

static void* worker_main(void* unused) {
  baton_wait(main_holds_it);
  const pid_t child = fork();
  if (child == 0) {
    items += take_from_queue();  // MARK: child
    printf("child: went on\n");
    fflush(stdout);
    _exit(0);
  }
  end_of(child);
  return unused;
}

__attribute__((noinline)) static void fill_queue(pthread_t worker) {
  pthread_mutex_lock(&queue_mutex);  // MARK: acquire
  ++items;
#ifdef REPAIRED
  pthread_mutex_unlock(&queue_mutex);
#endif
  baton_pass(main_holds_it);
  pthread_join(worker, NULL);
#ifndef REPAIRED
  pthread_mutex_unlock(&queue_mutex);
#endif
}

int main(void) {
  pthread_mutex_lock(&queue_mutex);
  ++items;
  pthread_mutex_unlock(&queue_mutex);
  // The first process waits for the daemon's end, as systemd would.
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return 1;
  const pid_t middle = fork();
  if (middle != 0) {
    int status = 0;
    int worst = 0;
    while (wait(&status) > 0) worst |= status;
    return worst == 0 ? 0 : 1;
  }
  if (daemon(1, 1) != 0) return 1;
  pthread_t worker;
  main_holds_it = baton_make();
  if (pthread_create(&worker, NULL, worker_main, NULL) != 0) return 1;
  fill_queue(worker);  // MARK: fill
  _exit(0);
}
