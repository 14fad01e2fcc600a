// Mechanism: main, which has Python's GIL, waits for a mutex of C. A worker has that mutex and calls into Python: it waits
//            for the GIL. With -DJOIN main waits for the end of that worker instead.
// To blame:  the wait with the GIL held.
// User sees: the program stops. Its worker wakes up every 5 ms, so it does not look asleep.
// Fix:       Py_BEGIN_ALLOW_THREADS around the wait; or give the mutex back before calling into Python.
// Repaired:  main gives the GIL back while it waits.
//
// Variant "slow": the worker computes for three seconds with the mutex, and needs no GIL. Main and a caller of Python wait
// for it, the one by the mutex and the other by the GIL, and go on then.
// EXPECT-BARE: hang
// EXPECT: lock-cycle proven hang lock=cache_lock victims=0
// EXPECT-STACK: stack look_up@wait main@call
// EXPECT-NONE(slow)
// EXPECT-BARE(slow): ok
// EXPECT(join): join-cycle proven hang culprit="Python's GIL" victims=0
#include <pthread.h>
#include <time.h>

#include "../baton.h"
#ifdef SLOW
#include <sched.h>

#include "../call_of.h"
#endif

// What is used of libpython: a stable interface, so that its headers are not needed.
void Py_InitializeEx(int install_handlers);
void* PyEval_SaveThread(void);
void PyEval_RestoreThread(void* thread);
int PyGILState_Ensure(void);
void PyGILState_Release(int state);
int PyRun_SimpleString(const char* source);

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static struct baton worker_has_it;
static pthread_t worker;

__attribute__((noinline)) static void call_back(void) {
  const int state = PyGILState_Ensure();
  PyRun_SimpleString("pass");
  PyGILState_Release(state);
}

#ifdef SLOW
static void* caller_main(void* unused) {
  call_back();
  return unused;
}

static void compute(void) {
  const struct timespec time = {3, 0};
  pthread_t caller;
  pthread_create(&caller, NULL, caller_main, NULL);
  while (call_of(getpid()) != SYS_futex) sched_yield();
  nanosleep(&time, NULL);
  pthread_detach(caller);
}
#endif

static void* worker_main(void* unused) {
  pthread_mutex_lock(&cache_lock);
  baton_pass(worker_has_it);
#ifdef SLOW
  compute();
#else
  call_back();
#endif
  pthread_mutex_unlock(&cache_lock);
  return unused;
}

__attribute__((noinline)) static void look_up(void) {
#ifdef REPAIRED
  void* const thread = PyEval_SaveThread();
#endif
#ifdef JOIN
  pthread_join(worker, NULL);  // MARK: end
#else
  pthread_mutex_lock(&cache_lock);  // MARK: wait
  pthread_mutex_unlock(&cache_lock);
#endif
#ifdef REPAIRED
  PyEval_RestoreThread(thread);
#endif
}

int main(void) {
  worker_has_it = baton_make();
  Py_InitializeEx(0);
  pthread_create(&worker, NULL, worker_main, NULL);
  baton_wait(worker_has_it);
  look_up();  // MARK: call
#ifndef JOIN
  void* const thread = PyEval_SaveThread();
  pthread_join(worker, NULL);
  PyEval_RestoreThread(thread);
#endif
  return 0;
}
