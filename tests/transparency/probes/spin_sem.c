/* Spinlocks and semaphores. */
#include "probe.h"

#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>

static pthread_spinlock_t g_spin;
static void try_spin(void) { SHOW(pthread_spin_trylock(&g_spin)); }

PROBE(spin) {
  pthread_spin_init(&g_spin, PTHREAD_PROCESS_PRIVATE);
  SHOW(pthread_spin_lock(&g_spin));
  SHOW(pthread_spin_trylock(&g_spin));
  in_thread(try_spin);
  in_child(try_spin);
  SHOW(pthread_spin_unlock(&g_spin));
  SHOW(pthread_spin_trylock(&g_spin));
  SHOW(pthread_spin_unlock(&g_spin));
  SHOW(pthread_spin_destroy(&g_spin));
}

/* The new thread locks a spinlock that the thread of the probe holds. The thread of the probe unlocks the spinlock when
 * the new thread is about to spin. */
static volatile int g_about_to_spin;
static int g_results[2];
static void* spin_until_free(void* unused) {
  g_about_to_spin = 1;
  g_results[0] = pthread_spin_lock(&g_spin);
  g_results[1] = pthread_spin_unlock(&g_spin);
  return unused;
}
PROBE(contended_spin) {
  pthread_t thread;
  pthread_spin_init(&g_spin, PTHREAD_PROCESS_PRIVATE);
  g_about_to_spin = 0;
  pthread_spin_lock(&g_spin);
  const int created = pthread_create(&thread, NULL, spin_until_free, NULL);
  while (!g_about_to_spin) {
  }
  const int unlocked = pthread_spin_unlock(&g_spin);
  SHOW(pthread_join(thread, NULL));
  say("  created %d, unlocked %d, in the thread %d %d", created, unlocked, g_results[0], g_results[1]);
}

static sem_t g_semaphore;

PROBE(semaphore_that_ends) {
  sem_init(&g_semaphore, 0, 1);
  SHOW(sem_wait(&g_semaphore));
  SHOW(sem_destroy(&g_semaphore));
  sem_init(&g_semaphore, 0, 1);
  SHOW(sem_trywait(&g_semaphore));
  SHOW(sem_trywait(&g_semaphore));
  SHOW(sem_post(&g_semaphore));
  SHOW(sem_destroy(&g_semaphore));
}

PROBE(semaphore) {
  int value = -1;
  const struct timespec past = long_ago();
  const struct timespec invalid = {1, 1000000000};
  struct timespec soon;
  sem_init(&g_semaphore, 0, 2);
  SHOW(sem_wait(&g_semaphore));
  SHOW(sem_timedwait(&g_semaphore, &past));
  SHOW(sem_trywait(&g_semaphore));
  SHOW(sem_timedwait(&g_semaphore, &past));
  SHOW(sem_timedwait(&g_semaphore, &invalid));
  SHOW(sem_clockwait(&g_semaphore, CLOCK_MONOTONIC, &past));
  SHOW(sem_clockwait(&g_semaphore, CLOCK_MONOTONIC, &invalid));
  SHOW(sem_clockwait(&g_semaphore, CLOCK_PROCESS_CPUTIME_ID, &past));
  soon = in_ms(CLOCK_REALTIME, 20);
  SHOW_TIMED(sem_timedwait(&g_semaphore, &soon), 19);
  soon = in_ms(CLOCK_MONOTONIC, 20);
  SHOW_TIMED(sem_clockwait(&g_semaphore, CLOCK_MONOTONIC, &soon), 19);
  SHOW(sem_post(&g_semaphore));
  SHOW(sem_timedwait(&g_semaphore, &invalid));
  SHOW(sem_post(&g_semaphore));
  SHOW(sem_clockwait(&g_semaphore, CLOCK_REALTIME, &past));
  SHOW(sem_getvalue(&g_semaphore, &value));
  say("value %d", value);
  sem_init(&g_semaphore, 0, SEM_VALUE_MAX);
  SHOW(sem_post(&g_semaphore));
  SHOW(sem_destroy(&g_semaphore));
}

PROBE(semaphore_that_begins_anew) {
  int value = -1;
  SHOW(sem_init(&g_semaphore, 0, 0));
  SHOW(sem_post(&g_semaphore));
  SHOW(sem_init(&g_semaphore, 0, 1));
  SHOW(sem_wait(&g_semaphore));
  SHOW(sem_getvalue(&g_semaphore, &value));
  say("value %d", value);
  SHOW(sem_init(&g_semaphore, 0, (unsigned)SEM_VALUE_MAX + 1));
  SHOW(sem_post(&g_semaphore));
  SHOW(sem_destroy(&g_semaphore));
}

static const struct timespec kNever = {.tv_sec = 4000000000, .tv_nsec = 0};
static void make_taken(void) { sem_init(&g_semaphore, 0, 0); }
static void make_free(void) { sem_init(&g_semaphore, 0, 1); }
static void post(void) { sem_post(&g_semaphore); }
static void show_state(void) { SHOW(sem_trywait(&g_semaphore)); }
static int wait_(void) { return sem_wait(&g_semaphore); }
static int timedwait(void) { return sem_timedwait(&g_semaphore, &kNever); }
static int clockwait(void) { return sem_clockwait(&g_semaphore, CLOCK_MONOTONIC, &kNever); }
static int trywait(void) { return sem_trywait(&g_semaphore); }

PROBE(blocking) {
  show_blocking(&(struct Blocking){"wait", make_taken, wait_, post, show_state, NULL});
  show_blocking(&(struct Blocking){"timedwait", make_taken, timedwait, post, show_state, NULL});
  show_blocking(&(struct Blocking){"clockwait", make_taken, clockwait, post, show_state, NULL});
}
/* sem_wait() is a cancellation point even if it need not wait. sem_trywait() is no cancellation point. */
PROBE(not_blocking) {
  show_blocking(&(struct Blocking){"wait", make_free, wait_, post, show_state, NULL});
  show_blocking(&(struct Blocking){"timedwait", make_free, timedwait, post, show_state, NULL});
  show_blocking(&(struct Blocking){"clockwait", make_free, clockwait, post, show_state, NULL});
  show_blocking(&(struct Blocking){"trywait", make_free, trywait, post, show_state, NULL});
}

/* A signal handler posts the semaphore, and then the same thread waits for it. */
static void on_signal(int number) {
  (void)number;
  SHOW(sem_post(&g_semaphore));
}
PROBE(posted_by_handler) {
  struct sigaction old;
  const struct sigaction action = {.sa_handler = on_signal};
  sem_init(&g_semaphore, 0, 0);
  sigaction(SIGUSR1, &action, &old);
  raise(SIGUSR1);
  SHOW(sem_wait(&g_semaphore));
  sigaction(SIGUSR1, &old, NULL);
}

static sem_t* g_shared;
static void post_shared(void) { SHOW(sem_post(g_shared)); }
PROBE(across_processes) {
  g_shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  sem_init(g_shared, 1, 0);
  in_child(post_shared);
  SHOW(sem_wait(g_shared));
  SHOW(sem_trywait(g_shared));
  munmap(g_shared, 4096);
}

static void use_taken(void) {
  const struct timespec past = long_ago();
  SHOW(sem_trywait(&g_semaphore));
  SHOW(sem_timedwait(&g_semaphore, &past));
  SHOW(sem_post(&g_semaphore));
  SHOW(sem_wait(&g_semaphore));
}
PROBE(held_over_fork) {
  make_free();
  SHOW(sem_wait(&g_semaphore));
  in_child(use_taken);
  SHOW(sem_post(&g_semaphore));
}
