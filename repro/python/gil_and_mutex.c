// Mechanism: main holds Python's GIL and waits for a mutex of C code. A worker holds that mutex and calls into Python,
//            so it waits for the GIL. In the variant "join" main waits for the end of that worker instead.
// To blame:  the wait while the GIL is held.
// User sees: the program stops. Its worker wakes up every 5 ms, so the program does not look asleep.
// Fix:       release the GIL during the wait, by Py_BEGIN_ALLOW_THREADS and Py_END_ALLOW_THREADS around it. Or let the
//            worker release the mutex before it calls into Python.
// Repaired:  main releases the GIL while it waits.
//
// Variant "slow": the worker computes for three seconds. The worker holds the mutex meanwhile, and does not need the
// GIL. Main waits for the mutex, and a third thread waits for the GIL, which main holds. After three seconds all three
// threads go on.
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

// The functions of libpython that this case uses. They are declared here, so that the case needs no headers of Python.
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
