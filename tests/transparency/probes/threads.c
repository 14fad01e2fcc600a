/* Threads: how they are made, how they are named, and how they end. */
#include "probe.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void join(pthread_t thread) {
  void* result = NULL;
  const int joined = pthread_join(thread, &result);
  say("  joined %d, %s", joined,
      result == PTHREAD_CANCELED     ? "cancelled"
      : result == (void*)(intptr_t)5 ? "five"
      : result == NULL               ? "null"
                                     : "other");
}

/* Makes and joins a thread. The lines that the thread prints come first. */
static void make_and_join(const pthread_attr_t* attributes, void* (*routine)(void*), void* argument) {
  pthread_t thread;
  errno = kSentinel;
  const int created = pthread_create(&thread, attributes, routine, argument);
  const int error = errno;
  if (created == 0) join(thread);
  say("  created %d, errno %d", created, error);
}

/* Prints what a new thread finds: errno, its name, its signal mask, its stack. */
static void* look_around(void* argument) {
  char name[16] = "";
  sigset_t mask;
  pthread_attr_t attributes;
  size_t stack = 0;
  size_t guard = 0;
  int detached = -1;
  say("  errno %d, argument %d", errno, (int)(intptr_t)argument);
  pthread_getname_np(pthread_self(), name, sizeof name);
  pthread_sigmask(SIG_BLOCK, NULL, &mask);
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstacksize(&attributes, &stack);
  pthread_attr_getguardsize(&attributes, &guard);
  pthread_attr_getdetachstate(&attributes, &detached);
  pthread_attr_destroy(&attributes);
  say("  name %s, HUP blocked %d, stack %zu, guard %zu, detached %d", name, sigismember(&mask, SIGHUP), stack, guard,
      detached);
  return (void*)(intptr_t)5;
}
static void* leave_by_exit(void* unused) {
  (void)unused;
  pthread_exit((void*)(intptr_t)5);
}
static void* be_cancelled(void* unused) {
  pthread_cancel(pthread_self());
  pthread_testcancel();
  return unused;
}

PROBE(ways_to_end) {
  sigset_t mask;
  sigset_t old;
  sigemptyset(&mask);
  sigaddset(&mask, SIGHUP);
  make_and_join(NULL, look_around, (void*)(intptr_t)1);
  pthread_sigmask(SIG_BLOCK, &mask, &old);
  make_and_join(NULL, look_around, (void*)(intptr_t)2);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  make_and_join(NULL, leave_by_exit, NULL);
  make_and_join(NULL, be_cancelled, NULL);
}

PROBE(attributes) {
  pthread_t thread;
  pthread_attr_t attributes;
  const size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN);
  pthread_attr_init(&attributes);
  SHOW(pthread_attr_setstacksize(&attributes, least));
  make_and_join(&attributes, leave_by_exit, NULL);
  SHOW(pthread_attr_setstacksize(&attributes, 1 << 20));
  make_and_join(&attributes, look_around, (void*)(intptr_t)3);
  void* const stack = mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  SHOW(pthread_attr_setstack(&attributes, stack, 1 << 18));
  make_and_join(&attributes, look_around, (void*)(intptr_t)4);
  munmap(stack, 1 << 18);
  /* A stack that is larger than the address space: no thread is made. */
  pthread_attr_init(&attributes);
  SHOW(pthread_attr_setstacksize(&attributes, (size_t)1 << 50));
  SHOW(pthread_create(&thread, &attributes, look_around, NULL));
}

static atomic_int g_detached_tid;
static void* end_detached(void* unused) {
  atomic_store(&g_detached_tid, gettid());
  return unused;
}
PROBE(detached) {
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  atomic_store(&g_detached_tid, 0);
  SHOW(pthread_create(&thread, &attributes, end_detached, NULL));
  while (atomic_load(&g_detached_tid) == 0) sched_yield();
  while (tgkill(getpid(), atomic_load(&g_detached_tid), 0) == 0) sched_yield();
}

static pthread_key_t g_key;
static atomic_int g_destroyed;
static void destroy(void* value) {
  if (atomic_fetch_add(&g_destroyed, 1) < 2) pthread_setspecific(g_key, value); /* so libc calls destroy() again */
}
static void* set_and_end(void* how) {
  pthread_setspecific(g_key, "value");
  if (how != NULL) pthread_exit(NULL);
  return NULL;
}
PROBE(specific_data) {
  SHOW(pthread_key_create(&g_key, destroy));
  for (int i = 0; i < 2; ++i) {
    atomic_store(&g_destroyed, 0);
    make_and_join(NULL, set_and_end, i == 0 ? NULL : &g_key);
    say("  destroyed %d times", atomic_load(&g_destroyed));
  }
  SHOW(pthread_key_delete(g_key));
}

static int g_release[2];
static void* wait_for_release(void* unused) {
  char byte;
  if (read(g_release[0], &byte, 1) != 0) abort();
  return unused;
}
PROBE(names) {
  char name[16] = "";
  char before[16] = "";
  pthread_t thread;
  pthread_getname_np(pthread_self(), before, sizeof before);
  SHOW(pthread_setname_np(pthread_self(), "a name that is too long for a thread"));
  SHOW(pthread_setname_np(pthread_self(), "fifteen letters"));
  SHOW(pthread_getname_np(pthread_self(), name, sizeof name));
  say("  %s", name);
  SHOW(pthread_setname_np(pthread_self(), ""));
  SHOW(pthread_getname_np(pthread_self(), name, sizeof name));
  say("  '%s'", name);
  if (pipe(g_release) != 0) abort();
  SHOW(pthread_create(&thread, NULL, wait_for_release, NULL));
  SHOW(pthread_setname_np(thread, "other"));
  SHOW(pthread_getname_np(thread, name, sizeof name));
  say("  %s", name);
  close(g_release[1]);
  join(thread);
  close(g_release[0]);
  pthread_setname_np(pthread_self(), before);
}

/* There are three rounds of 100 threads, more than a small table of the shim could hold. */
static void* return_at_once(void* argument) { return argument; }
PROBE(many) {
  enum { kAtOnce = 100 };
  static pthread_t threads[kAtOnce];
  int failed = 0;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kAtOnce; ++i) failed += pthread_create(&threads[i], NULL, return_at_once, NULL) != 0;
    for (int i = 0; i < kAtOnce; ++i) failed += pthread_join(threads[i], NULL) != 0;
  }
  say("failed %d", failed);
}
