// lost_mutex [semaphores] [CHANGE...]: a thread holds a mutex and a rwlock. The process makes the changes that the
// arguments name, and forks. The child tries to lock the mutex for 50 ms. The thread that holds the mutex is lost. The
// shim must report this in spite of the changes.
//
// "semaphores": before the thread locks the mutex, it takes 200 semaphores, and never posts them. The child tries to
// lock the mutex, and then the rwlock. The semaphores do not all fit into the shim's list of the locks that the thread
// holds. The shim must report both locks nevertheless. The shim can recognise the orphaned mutex by the owner in the
// memory of the mutex, but it knows of the orphaned rwlock only from the list.
//
// A change is an environment of confine.h, which the process applies to itself, or one of the following:
//
// - chroot: the root becomes /dev, which contains no programs, libraries or /proc
// - mlockall: all present and later memory is locked
// - gone: the memory of another mutex that the thread holds is unmapped
// - slowly: the process sleeps for a second, so that `forksight run` examines it at least once
// - early-fork: the process forks a child that ends at once
// - holders=N: N more threads hold 64 other locks each
// - threads=N: the process starts N more threads, and then a thread that forks
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "confine.h"

enum { kPage = 4096, kSemaphores = 200, kManyLocks = 64 };

static pthread_mutex_t lost_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lost_rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t* g_gone_mutex; /* in a page of its own */
static sem_t g_semaphores[kSemaphores];
static int g_takes_semaphores;
static int g_ready[2];
static int g_stop[2];

static void need(int ok, const char* what) {
  if (ok) return;
  perror(what);
  exit(2);
}

/* Starts a thread with a small stack, because the environment may limit the memory, or the process may lock all memory.
 */
static void start(pthread_t* thread, void* (*routine)(void*)) {
  pthread_attr_t small;
  need(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 64U << 10U) == 0, "attributes");
  need(pthread_create(thread, &small, routine, NULL) == 0, "pthread_create");
  pthread_attr_destroy(&small);
}

static void wait_for_semaphores(void) {
  for (int i = 0; i < kSemaphores; ++i) need(sem_wait(&g_semaphores[i]) == 0, "sem_wait");
}

/* The function of a thread that holds kManyLocks locks until the process stops the thread. */
static void* hold_many(void* unused) {
  pthread_mutex_t locks[kManyLocks];
  char byte = 0;
  for (int i = 0; i < kManyLocks; ++i) need(pthread_mutex_init(&locks[i], NULL) == 0, "pthread_mutex_init");
  for (int i = 0; i < kManyLocks; ++i) pthread_mutex_lock(&locks[i]);
  need(write(g_ready[1], &byte, 1) == 1 && read(g_stop[0], &byte, 1) == 0, "pipe");
  for (int i = 0; i < kManyLocks; ++i) pthread_mutex_unlock(&locks[i]);
  return unused;
}

static void* hold(void* unused) {
  char byte = 0;
  if (g_takes_semaphores) wait_for_semaphores();
  pthread_mutex_lock(g_gone_mutex);
  pthread_mutex_lock(&lost_mutex);
  pthread_rwlock_wrlock(&lost_rwlock);
  need(write(g_ready[1], &byte, 1) == 1 && read(g_stop[0], &byte, 1) == 0, "pipe");
  pthread_rwlock_unlock(&lost_rwlock);
  pthread_mutex_unlock(&lost_mutex);
  return unused;
}

static void wait_for(pid_t child) {
  int status = -1;
  need(child > 0 && waitpid(child, &status, 0) == child, "waitpid");
  printf("child: status %d\n", status);
}

static void fork_and_end(void) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  wait_for(child);
}

static void change(const char* what) {
  int is_missing = 0;
  if (strcmp(what, "early-fork") == 0) {
    fork_and_end();
  } else if (strcmp(what, "slowly") == 0) {
    sleep(1);
  } else if (strcmp(what, "gone") == 0) {
    need(munmap(g_gone_mutex, kPage) == 0, "munmap");
  } else if (strcmp(what, "chroot") == 0) {
    if (geteuid() != 0) exit(77);
    need(chroot("/dev") == 0 && chdir("/") == 0, "chroot");
  } else if (strcmp(what, "mlockall") == 0) {
    need(mlockall(MCL_CURRENT | MCL_FUTURE) == 0, "mlockall");
  } else {
    const char* const problem = confine(what, &is_missing);
    if (problem == NULL) return;
    fprintf(stderr, "%s: %s\n", what, problem);
    exit(is_missing ? 77 : 2);
  }
}

static void fork_and_touch(void) {
  const pid_t child = fork();
  if (child == 0) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 50 * 1000 * 1000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    const int result = pthread_mutex_timedlock(&lost_mutex, &until);
    printf("child: %s\n", result == ETIMEDOUT ? "timed out" : strerror(result));
    const int of_rwlock = g_takes_semaphores ? pthread_rwlock_timedwrlock(&lost_rwlock, &until) : ETIMEDOUT;
    printf("child: %s\n", of_rwlock == ETIMEDOUT ? "timed out" : strerror(of_rwlock));
    _exit(0);
  }
  wait_for(child);
}

static void* idle(void* unused) {
  char byte = 0;
  need(write(g_ready[1], &byte, 1) == 1 && read(g_stop[0], &byte, 1) == 0, "pipe");
  return unused;
}

static void* fork_here(void* unused) {
  fork_and_touch();
  return unused;
}

int main(int argc, char** argv) {
  pthread_t thread;
  pthread_t forking;
  pthread_t unused;
  int more = 0;
  char byte = 0;
  setvbuf(stdout, NULL, _IONBF, 0);
  alarm(60);
  need(pipe(g_ready) == 0 && pipe(g_stop) == 0, "pipe");
  g_gone_mutex = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  need(g_gone_mutex != MAP_FAILED && pthread_mutex_init(g_gone_mutex, NULL) == 0, "mmap");
  g_takes_semaphores = argc > 1 && strcmp(argv[1], "semaphores") == 0;
  for (int i = 0; i < kSemaphores; ++i) need(sem_init(&g_semaphores[i], 0, 1) == 0, "sem_init");
  if (g_takes_semaphores) wait_for_semaphores();
  for (int i = 0; i < kSemaphores; ++i) need(sem_post(&g_semaphores[i]) == 0, "sem_post");
  for (int i = 1; i < argc; ++i) {
    if (sscanf(argv[i], "holders=%d", &more) != 1) continue;
    while (more-- > 0) {
      start(&unused, hold_many);
      need(read(g_ready[0], &byte, 1) == 1, "pipe");
    }
  }
  more = 0;
  start(&thread, hold);
  need(read(g_ready[0], &byte, 1) == 1, "pipe");
  for (int i = 1; i < argc; ++i) {
    const int is_early = strcmp(argv[i], "semaphores") == 0 || strncmp(argv[i], "holders=", 8) == 0;
    if (!is_early && sscanf(argv[i], "threads=%d", &more) != 1) change(argv[i]);
  }
  for (int i = 0; i < more; ++i) {
    start(&unused, idle);
    need(read(g_ready[0], &byte, 1) == 1, "pipe");
  }
  if (more == 0) {
    fork_and_touch();
  } else {
    start(&forking, fork_here);
    pthread_join(forking, NULL);
  }
  close(g_stop[1]);
  pthread_join(thread, NULL);
  return 0;
}
