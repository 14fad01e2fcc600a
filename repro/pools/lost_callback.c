// Mechanism: a timer calls a function (SIGEV_THREAD). libc makes a thread for each call, and one more thread that waits
//            for the timers. The child tries to arm the timer, and waits for the call. But the child has neither the
//            timer nor the thread that waits for timers.
// To blame:  the fork after the timer was made. Three hundred threads have made a call, but all of them ended before
//            the fork. So none of them was lost at the fork.
// User sees: the child stops in a condition variable, at 0 % CPU.
// Fix:       make the timer in the child, or make it again in a pthread_atfork() child handler.
// Repaired:  the child calls the function itself.
//
// EXPECT-BARE: hang
// EXPECT: lost-wakeup proven/possible hang culprit="1 lost thread" victims=0
// EXPECT-WHY: lost-wakeup proven/possible hang culprit="1 lost thread" victims=0
// EXPECT-STACK: fork main@fork
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "../baton.h"

enum { kCalls = 300 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t was_called = PTHREAD_COND_INITIALIZER;
static int calls = 0;
static timer_t timer;

static void on_timer(union sigval unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  ++calls;
  pthread_cond_signal(&was_called);
  pthread_mutex_unlock(&mutex);
}

__attribute__((noinline)) static void call_once(void) {
  const struct itimerspec soon = {.it_value = {.tv_nsec = 1}};
  pthread_mutex_lock(&mutex);
  const int before = calls;
  timer_settime(timer, 0, &soon, NULL);
  while (calls == before) pthread_cond_wait(&was_called, &mutex);
  pthread_mutex_unlock(&mutex);
}

// Waits until only this thread and libc's thread for timers are left.
static void wait_for_ends(void) {
  int threads = 0;
  while (threads != 2) {
    char line[256];
    FILE* const file = fopen("/proc/self/status", "r");
    if (file == NULL) abort();
    while (fgets(line, sizeof line, file) != NULL) sscanf(line, "Threads: %d", &threads);
    fclose(file);
    sched_yield();
  }
}

int main(void) {
  struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_timer};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return 1;
  for (int i = 0; i < kCalls; ++i) call_once();
  wait_for_ends();
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
#ifdef REPAIRED
    on_timer((union sigval){0});
#else
    call_once();
#endif
    _exit(0);
  }
  return end_of(child);
}
