// predict_odds PROGRAM FORKS: forks FORKS times. Meanwhile other threads take and release a lock that the children
// need. A child tries to take the lock, and gives up if the lock is taken. So no child hangs. Prints how many children
// found the lock taken.
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../repro/baton.h"

enum { kBeforeForksMs = 300, kUs = 1000, kMs = 1000000 };

static pthread_mutex_t cache_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t gate_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t cache_rw = PTHREAD_RWLOCK_INITIALIZER;
static atomic_bool forks_begun, is_over, is_idle;
static struct baton jobs;

static void pass_time(long ns) {
  const struct timespec time = {ns / 1000000000, ns % 1000000000};
  nanosleep(&time, NULL);
}
static long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / kMs;
}
static long about(unsigned* seed, long mean) { return (long)((double)mean * 2 * rand_r(seed) / RAND_MAX); }

static void hold(long held_ns, long free_ns) {
  pthread_mutex_lock(&cache_mu);
  pass_time(held_ns);
  pthread_mutex_unlock(&cache_mu);
  pass_time(free_ns);
}

// --- what the other threads do

#define WORKER(name, ...)           \
  static void* name(void* unused) { \
    while (!is_over) __VA_ARGS__;   \
    return unused;                  \
  }
WORKER(rarely, hold(kMs / 2, 50 * kMs))
WORKER(a_tenth, hold(kMs, 9 * kMs))
WORKER(half, hold(2 * kMs, 2 * kMs))
WORKER(mostly, hold(9 * kMs, kMs))
WORKER(half_when_forks, {
  if (forks_begun)
    hold(2 * kMs, 2 * kMs);
  else
    pass_time(kMs);
})
WORKER(mostly_before_forks, {
  if (!forks_begun)
    hold(9 * kMs, kMs / 2);
  else
    pass_time(kMs);
})
WORKER(in_phases, {
  if (now_ms() / 100 % 2 == 0)
    hold(3 * kMs, kMs);
  else
    pass_time(kMs);
})
WORKER(write_some, {
  pthread_rwlock_wrlock(&cache_rw);
  pass_time(2 * kMs);
  pthread_rwlock_unlock(&cache_rw);
  pass_time(8 * kMs);
})
WORKER(read_some, {
  pthread_rwlock_rdlock(&cache_rw);
  pass_time(3 * kMs);
  pthread_rwlock_unlock(&cache_rw);
  pass_time(7 * kMs);
})
WORKER(leave_gate_early, {
  pthread_mutex_lock(&gate_mu);
  pthread_mutex_lock(&cache_mu);
  pthread_mutex_unlock(&gate_mu);
  pass_time(2 * kMs);
  pthread_mutex_unlock(&cache_mu);
  pass_time(4 * kMs);
})
WORKER(say_when_idle, {
  hold(2 * kMs, 0);
  is_idle = true;
  pass_time(2 * kMs);
  is_idle = false;
  pass_time(kMs);
})

static void* irregularly(void* unused) {
  for (unsigned seed = 7; !is_over;) hold(about(&seed, kMs), about(&seed, 4 * kMs));
  return unused;
}
static void* work_for_a_while(void* unused) {
  pass_time(kMs);
  hold(2 * kMs, kMs);
  return unused;
}
WORKER(make_threads, {
  pthread_t thread;
  if (pthread_create(&thread, NULL, work_for_a_while, NULL) != 0) abort();
  pthread_join(thread, NULL);
})
static void* work_when_told(void* unused) {
  for (char byte; read(jobs.end[0], &byte, 1) == 1;) hold(2 * kMs, 0);
  return unused;
}

// --- when the program forks

static unsigned g_seed = 3;
static void at_any_time(void) { pass_time(kUs * 500 + about(&g_seed, kMs)); }
static void when_idle(void) {
  at_any_time();
  while (!is_idle) pass_time(100 * kUs);
}
static void after_a_job(void) {
  pass_time(5 * kMs);
  baton_pass(jobs);
  pass_time(about(&g_seed, 3 * kMs / 2));
}

struct program {
  const char* name;
  void* (*work)(void*);
  int workers;
  void (*wait)(void);
  enum { kMutex, kReader, kWriter, kGated } child;
};
static const struct program programs[] = {
    {"rare", rarely, 1, at_any_time, kMutex},
    {"a_tenth", a_tenth, 1, at_any_time, kMutex},
    {"half", half, 1, at_any_time, kMutex},
    {"most", mostly, 1, at_any_time, kMutex},
    {"three_workers", a_tenth, 3, at_any_time, kMutex},
    {"irregular", irregularly, 1, at_any_time, kMutex},
    {"phases", in_phases, 1, at_any_time, kMutex},
    {"burst_before", mostly_before_forks, 1, at_any_time, kMutex},
    {"begins_late", half_when_forks, 1, at_any_time, kMutex},
    {"short_lived", make_threads, 1, at_any_time, kMutex},
    {"writer", write_some, 1, at_any_time, kReader},
    {"reader", read_some, 1, at_any_time, kWriter},
    {"gate_left_early", leave_gate_early, 1, at_any_time, kGated},
    {"when_idle", say_when_idle, 1, when_idle, kMutex},
    {"after_a_job", work_when_told, 1, after_a_job, kMutex},
};

static int try_and_take(const struct program* of) {
  if (of->child == kReader) {
    if (pthread_rwlock_tryrdlock(&cache_rw) != 0) return 1;
    pthread_rwlock_unlock(&cache_rw);
    pthread_rwlock_rdlock(&cache_rw);
  } else if (of->child == kWriter) {
    if (pthread_rwlock_trywrlock(&cache_rw) != 0) return 1;
    pthread_rwlock_unlock(&cache_rw);
    pthread_rwlock_wrlock(&cache_rw);
  } else {
    if (pthread_mutex_trylock(&cache_mu) != 0) return 1;
    pthread_mutex_unlock(&cache_mu);
    pthread_mutex_lock(&cache_mu);
  }
  return 0;
}

static int play(const struct program* of, int forks) {
  pthread_t workers[8];
  int taken = 0;
  jobs = baton_make();
  for (int i = 0; i < of->workers; ++i) {
    if (pthread_create(&workers[i], NULL, of->work, NULL) != 0) abort();
  }
  pass_time(kBeforeForksMs * kMs);
  forks_begun = true;
  pass_time(20 * kMs);
  for (int i = 0; i < forks; ++i) {
    of->wait();
    if (of->child == kGated) pthread_mutex_lock(&gate_mu);
    const pid_t child = fork();
    if (child == 0) _exit(try_and_take(of));
    if (of->child == kGated) pthread_mutex_unlock(&gate_mu);
    taken += end_of(child);
  }
  is_over = true;
  close(jobs.end[1]);
  for (int i = 0; i < of->workers; ++i) pthread_join(workers[i], NULL);
  return taken;
}

int main(int count, char** arguments) {
  for (size_t i = 0; count == 3 && i < sizeof programs / sizeof *programs; ++i) {
    if (strcmp(programs[i].name, arguments[1]) != 0) continue;
    printf("%d\n", play(&programs[i], atoi(arguments[2])));
    return 0;
  }
  return 2;
}
