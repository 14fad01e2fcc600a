/* Calls functions that the shim interposes, and prints the results, errno, the order of handlers, and the number of
 * open descriptors. The output and the exit status (7) must be identical without and with the shim.
 *
 * With the argument "no-descriptors", the process can open no descriptor during the forks. Output and status must
 * still be identical.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A value of errno that no call sets. */
enum { kSentinel = 4711 };

#define SHOW(expression)                                         \
  do {                                                           \
    errno = kSentinel;                                           \
    const int result_ = (expression);                            \
    const int errno_ = errno;                                    \
    printf("%s = %d, errno %d\n", #expression, result_, errno_); \
  } while (0)

static struct timespec long_ago(void) { return (struct timespec){.tv_sec = 1, .tv_nsec = 0}; }

static void show_mutexes(void) {
  const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                       PTHREAD_MUTEX_ADAPTIVE_NP};
  for (unsigned i = 0; i < 4; ++i) {
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    const struct timespec past = long_ago();
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, types[i]);
    pthread_mutexattr_setrobust(&attributes, i == 3 ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED);
    pthread_mutex_init(&mutex, &attributes);
    printf("mutex type %d\n", types[i]);
    SHOW(pthread_mutex_lock(&mutex));
    SHOW(pthread_mutex_trylock(&mutex));
    if (types[i] != PTHREAD_MUTEX_RECURSIVE) {
      SHOW(pthread_mutex_timedlock(&mutex, &past));
      SHOW(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &past));
    } else {
      SHOW(pthread_mutex_unlock(&mutex));
    }
    SHOW(pthread_mutex_unlock(&mutex));
    if (types[i] == PTHREAD_MUTEX_ERRORCHECK) SHOW(pthread_mutex_unlock(&mutex));
    SHOW(pthread_mutex_destroy(&mutex));
  }
}

static void show_rwlock(void) {
  pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
  const struct timespec past = long_ago();
  SHOW(pthread_rwlock_rdlock(&rwlock));
  SHOW(pthread_rwlock_tryrdlock(&rwlock));
  SHOW(pthread_rwlock_trywrlock(&rwlock));
  SHOW(pthread_rwlock_timedwrlock(&rwlock, &past));
  SHOW(pthread_rwlock_unlock(&rwlock));
  SHOW(pthread_rwlock_unlock(&rwlock));
  SHOW(pthread_rwlock_wrlock(&rwlock));
  SHOW(pthread_rwlock_rdlock(&rwlock));
  SHOW(pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &past));
  SHOW(pthread_rwlock_unlock(&rwlock));
}

static void show_spin_and_semaphore(void) {
  pthread_spinlock_t spin;
  sem_t semaphore;
  const struct timespec past = long_ago();
  pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
  SHOW(pthread_spin_lock(&spin));
  SHOW(pthread_spin_trylock(&spin));
  SHOW(pthread_spin_unlock(&spin));
  sem_init(&semaphore, 0, 2);
  SHOW(sem_wait(&semaphore));
  SHOW(sem_trywait(&semaphore));
  SHOW(sem_trywait(&semaphore));
  SHOW(sem_timedwait(&semaphore, &past));
  SHOW(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &past));
  SHOW(sem_post(&semaphore));
  SHOW(sem_wait(&semaphore));
}

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t g_condition = PTHREAD_COND_INITIALIZER;
static sem_t g_semaphore;
static atomic_int g_waiting;
static atomic_int g_cleaned;

static void unlock(void* mutex) { atomic_store(&g_cleaned, 1 + pthread_mutex_unlock(mutex)); }

static void* wait_for_condition(void* unused) {
  (void)unused;
  pthread_mutex_lock(&g_mutex);
  pthread_cleanup_push(unlock, &g_mutex);
  atomic_store(&g_waiting, 1);
  for (;;) pthread_cond_wait(&g_condition, &g_mutex);
  pthread_cleanup_pop(1);
  return NULL;
}

static void* wait_for_semaphore(void* unused) {
  (void)unused;
  atomic_store(&g_waiting, 1);
  sem_wait(&g_semaphore);
  return NULL;
}

static void* leave_by_exit(void* unused) {
  (void)unused;
  pthread_exit((void*)(intptr_t)5);
}

static void join_and_show(const char* what, pthread_t thread) {
  void* result = NULL;
  const int joined = pthread_join(thread, &result);
  printf("%s: join %d, %s\n", what, joined,
         result == PTHREAD_CANCELED     ? "cancelled"
         : result == (void*)(intptr_t)5 ? "five"
                                        : "other");
}

static void show_conditions_and_cancellation(void) {
  const struct timespec past = long_ago();
  pthread_t thread;
  pthread_mutex_lock(&g_mutex);
  SHOW(pthread_cond_timedwait(&g_condition, &g_mutex, &past));
  SHOW(pthread_cond_clockwait(&g_condition, &g_mutex, CLOCK_MONOTONIC, &past));
  pthread_mutex_unlock(&g_mutex);
  pthread_create(&thread, NULL, wait_for_condition, NULL);
  while (!atomic_load(&g_waiting)) sched_yield();
  pthread_mutex_lock(&g_mutex); /* returns only when the thread has begun its wait, which unlocks the mutex */
  pthread_mutex_unlock(&g_mutex);
  pthread_cancel(thread);
  join_and_show("condition wait", thread);
  printf("cleaned %d, lock again %d\n", atomic_load(&g_cleaned), pthread_mutex_lock(&g_mutex));
  pthread_mutex_unlock(&g_mutex);
  sem_init(&g_semaphore, 0, 0);
  atomic_store(&g_waiting, 0);
  pthread_create(&thread, NULL, wait_for_semaphore, NULL);
  while (!atomic_load(&g_waiting)) sched_yield();
  pthread_cancel(thread);
  join_and_show("semaphore wait", thread);
  pthread_create(&thread, NULL, leave_by_exit, NULL);
  join_and_show("pthread_exit", thread);
}

static atomic_int g_interrupted;
static void on_signal(int number) { (void)number; }

static void* wait_interrupted(void* unused) {
  (void)unused;
  errno = kSentinel;
  const int result = sem_wait(&g_semaphore);
  printf("interrupted sem_wait = %d, errno %d\n", result, errno);
  atomic_store(&g_interrupted, 1);
  return NULL;
}

static void show_signals(void) {
  struct sigaction action = {.sa_handler = on_signal};
  pthread_t thread;
  sigaction(SIGUSR1, &action, NULL);
  pthread_create(&thread, NULL, wait_interrupted, NULL);
  while (!atomic_load(&g_interrupted)) {
    pthread_kill(thread, SIGUSR1);
    sched_yield();
  }
  pthread_join(thread, NULL);
}

static void* lock_and_return(void* unused) {
  pthread_mutex_lock(&g_mutex);
  pthread_mutex_unlock(&g_mutex);
  return unused;
}

static void show_threads(void) {
  pthread_attr_t attributes;
  pthread_t threads[200];
  int failed = 0;
  pthread_attr_init(&attributes);
  SHOW(pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)));
  for (int i = 0; i < 200; ++i) failed += pthread_create(&threads[i], &attributes, lock_and_return, NULL) != 0;
  for (int i = 0; i < 200; ++i) failed += pthread_join(threads[i], NULL) != 0;
  printf("small threads failed: %d\n", failed);
  SHOW(pthread_setname_np(pthread_self(), "a name that is too long for a thread"));
  SHOW(pthread_setname_np(pthread_self(), "probe"));
}

static void prepare_one(void) { printf("prepare one\n"); }
static void parent_one(void) { printf("parent one\n"); }
static void prepare_two(void) { printf("prepare two\n"); }
static void parent_two(void) { printf("parent two\n"); }
static atomic_int g_child_order;
static void child_one(void) { atomic_store(&g_child_order, atomic_load(&g_child_order) * 10 + 1); }
static void child_two(void) { atomic_store(&g_child_order, atomic_load(&g_child_order) * 10 + 2); }

static int g_hold[2];
static void* sleep_in_pipe(void* unused) {
  char byte;
  pthread_mutex_lock(&g_mutex); /* held during each fork below; no child touches it */
  atomic_store(&g_waiting, 1);
  if (read(g_hold[0], &byte, 1) != 0) abort();
  pthread_mutex_unlock(&g_mutex);
  return unused;
}

static int count_descriptors(void) {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  if (folder == NULL) return -1;
  while (readdir(folder) != NULL) ++count;
  closedir(folder);
  return count;
}

static void show_forks(int leave_no_descriptors) {
  pthread_t sleeper;
  struct rlimit before = {0, 0};
  if (pipe(g_hold) != 0) abort();
  atomic_store(&g_waiting, 0);
  pthread_create(&sleeper, NULL, sleep_in_pipe, NULL);
  while (!atomic_load(&g_waiting)) sched_yield();
  pthread_atfork(prepare_one, parent_one, child_one);
  pthread_atfork(prepare_two, parent_two, child_two);
  printf("descriptors before %d\n", count_descriptors());
  fflush(stdout);
  if (leave_no_descriptors) {
    getrlimit(RLIMIT_NOFILE, &before);
    const struct rlimit none = {0, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  for (int i = 0; i < 20; ++i) {
    errno = kSentinel;
    const pid_t child = fork();
    const int error = errno;
    if (child == 0) _exit(error == kSentinel && atomic_load(&g_child_order) == 12 ? 3 : 4);
    int status = 0;
    const pid_t waited = waitpid(child, &status, 0);
    if (waited != child || error != kSentinel || !WIFEXITED(status) || WEXITSTATUS(status) != 3) {
      printf("fork %d: errno %d, status %x\n", i, error, (unsigned)status);
    }
  }
  if (leave_no_descriptors) setrlimit(RLIMIT_NOFILE, &before);
  printf("descriptors after %d\n", count_descriptors());
  close(g_hold[1]);
  pthread_join(sleeper, NULL);
}

int main(int argc, char** argv) {
  show_mutexes();
  show_rwlock();
  show_spin_and_semaphore();
  show_conditions_and_cancellation();
  show_signals();
  show_threads();
  show_forks(argc > 1 && strcmp(argv[1], "no-descriptors") == 0);
  return 7;
}
