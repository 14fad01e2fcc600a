// Mechanism: a GThreadPool runs its jobs in threads of the parent. The child submits a job and waits for its result.
// To blame:  the fork after the pool was made. After a fork GLib supports only exec.
// User sees: the child stops in g_async_queue_pop, at 0 % CPU.
// Fix:       make the pool in the child, or exec in the child.
// Repaired:  the child makes a pool of its own.
//
// EXPECT-BARE: hang
// EXPECT: lost-thread-pool proven/likely hang culprit="GLib pool of 1 thread" library=libglib-2.0.so.0
// EXPECT-WHY: lost-thread-pool proven/likely hang culprit="GLib pool of 1 thread"
// EXPECT-STACK: fork main@fork
// EXPECT-CORE: lost-thread-pool likely may-hang culprit="GLib pool of 1 thread"
#include <glib.h>

#include "../baton.h"

static GAsyncQueue* answers;

static void answer(gpointer job, gpointer unused) {
  (void)unused;
  g_async_queue_push(answers, job);
}

__attribute__((noinline)) static int run_job(GThreadPool* pool) {
  g_thread_pool_push(pool, GINT_TO_POINTER(7), NULL);  // MARK: job
  return GPOINTER_TO_INT(g_async_queue_pop(answers));
}

static GThreadPool* make_pool(void) {
  answers = g_async_queue_new();
  return g_thread_pool_new(answer, NULL, 1, FALSE, NULL);
}

int main(void) {
  GThreadPool* pool = make_pool();
  if (run_job(pool) != 7) return 1;  // MARK: first
  const pid_t child = fork();        // MARK: fork
  if (child == 0) {
#ifdef REPAIRED
    // An exclusive pool does not use the threads of the pools that are not exclusive. The child lacks those threads.
    answers = g_async_queue_new();
    pool = g_thread_pool_new(answer, NULL, 1, TRUE, NULL);
#endif
    const int job = run_job(pool);
    _exit(job == 7 ? 0 : 1);
  }
  return end_of(child);
}
