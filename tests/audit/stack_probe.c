/* Measures how much stack hooked functions use. Before each call the probe fills the stack below the caller's frame
 * with a pattern. After the call the probe finds the lowest byte that has changed. Each line of output is a name and
 * the number of bytes from this byte to the caller's frame. A thread with a stack of kStack bytes makes the calls. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kStack = 256 << 10, kPainted = 128 << 10, kPaint = 0xa5 };

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t g_held = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t g_used = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t g_rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t g_condition = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t g_spin;
static sem_t g_semaphore;
static const struct timespec kPast = {1, 0};
static int g_pipe[2];
static int g_file;
static int g_shared_file;

static void* return_at_once(void* unused) { return unused; }

static void use_mutex(void) {
  pthread_mutex_lock(&g_mutex);
  pthread_mutex_trylock(&g_mutex);
  pthread_mutex_unlock(&g_mutex);
}
static void use_both_mutexes(void) {
  pthread_mutex_lock(&g_mutex);
  pthread_mutex_lock(&g_used);
  pthread_mutex_unlock(&g_used);
  pthread_mutex_unlock(&g_mutex);
}
static void use_timed_mutex(void) {
  pthread_mutex_timedlock(&g_mutex, &kPast);
  pthread_mutex_unlock(&g_mutex);
}
static void wait_for_condition(void) {
  pthread_mutex_lock(&g_mutex);
  pthread_cond_timedwait(&g_condition, &g_mutex, &kPast);
  pthread_mutex_unlock(&g_mutex);
}
static void use_rwlock(void) {
  pthread_rwlock_rdlock(&g_rwlock);
  pthread_rwlock_unlock(&g_rwlock);
  pthread_rwlock_wrlock(&g_rwlock);
  pthread_rwlock_unlock(&g_rwlock);
}
static void use_semaphore(void) {
  sem_wait(&g_semaphore);
  sem_post(&g_semaphore);
}
static void use_spinlock(void) {
  pthread_spin_lock(&g_spin);
  pthread_spin_unlock(&g_spin);
}
static void make_thread(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, return_at_once, NULL) == 0) pthread_join(thread, NULL);
}
static void set_name(void) { pthread_setname_np(pthread_self(), "painted"); }
static void touch_orphan(void) {
  if (pthread_mutex_timedlock(&g_held, &kPast) == 0) abort();
}
static void lock_file(short type) {
  struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
  if (fcntl(g_file, F_SETLK, &lock) != 0) abort();
}
static void use_file_locks(void) {
  lock_file(F_WRLCK);
  lock_file(F_UNLCK);
  flock(g_shared_file, LOCK_EX);
  flock(g_shared_file, LOCK_UN);
}
static void unlock_what_is_the_parents(void) { lock_file(F_UNLCK); }
static void release_what_is_shared(void) { flock(g_shared_file, LOCK_UN); }
static void wait_for_timer(void) {
  sigset_t set;
  int number;
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  pthread_kill(pthread_self(), SIGALRM);
  sigwait(&set, &number);
}

/* This function is inlined, so that it fills the stack directly below the stack pointer of its caller. */
__attribute__((always_inline)) static inline unsigned char* paint(void) {
  unsigned char* below = NULL;
  __asm__ volatile("movq %%rsp, %0" : "=r"(below));
  for (unsigned char* at = below - kPainted; at < below; ++at) *(volatile unsigned char*)at = kPaint;
  return below;
}
__attribute__((always_inline)) static inline long used(const unsigned char* below) {
  const unsigned char* at = below - kPainted;
  while (at < below && *(const volatile unsigned char*)at == kPaint) ++at;
  return below - at;
}

__attribute__((noinline)) static long measure(void (*call)(void)) {
  const unsigned char* const below = paint();
  call();
  return used(below);
}

/* Measures fork(). The number for the parent includes the prepare and parent handlers. The number for the child
 * includes the prepare and child handlers. */
__attribute__((noinline)) static void measure_fork(void) {
  const unsigned char* const below = paint();
  int results[2];
  if (pipe(results) != 0) abort();
  const pid_t child = fork();
  const long bytes = used(below);
  if (child == 0) {
    const long all[] = {bytes,
                        measure(touch_orphan),
                        measure(use_both_mutexes),
                        measure(unlock_what_is_the_parents),
                        measure(release_what_is_shared),
                        measure(wait_for_timer)};
    if (write(results[1], all, sizeof all) < 0) abort();
    _exit(0);
  }
  waitpid(child, NULL, 0);
  long all[] = {-1, -1, -1, -1, -1, -1};
  if (read(results[0], all, sizeof all) < 0) abort();
  printf("fork %ld\nfork_in_child %ld\ntouch_of_an_orphan %ld\nboth_mutexes_in_child %ld\n", bytes, all[0], all[1],
         all[2]);
  printf("unlock_in_child %ld\nrelease_in_child %ld\ntimer_wait_in_child %ld\nmissed_release %ld\n", all[3], all[4],
         all[5], measure(release_what_is_shared));
}

static void* hold(void* unused) {
  char byte = 0;
  pthread_mutex_lock(&g_used);
  pthread_mutex_unlock(&g_used);
  pthread_mutex_lock(&g_held);
  if (write(g_pipe[1], &byte, 1) != 1) abort();
  for (;;) pause();
  return unused;
}

static void* run(void* unused) {
  static const struct {
    const char* name;
    void (*call)(void);
  } kCalls[] = {{"mutex", use_mutex},
                {"both_mutexes", use_both_mutexes},
                {"timed_mutex", use_timed_mutex},
                {"condition", wait_for_condition},
                {"rwlock", use_rwlock},
                {"semaphore", use_semaphore},
                {"spinlock", use_spinlock},
                {"create", make_thread},
                {"setname", set_name},
                {"file_locks", use_file_locks}};
  for (unsigned i = 0; i < sizeof kCalls / sizeof kCalls[0]; ++i) {
    printf("%s %ld\n", kCalls[i].name, measure(kCalls[i].call));
  }
  fflush(stdout);
  const struct itimerval later = {{0, 0}, {1000, 0}};
  lock_file(F_WRLCK);
  flock(g_shared_file, LOCK_EX);
  setitimer(ITIMER_REAL, &later, NULL);
  measure_fork();
  return unused;
}

int main(void) {
  pthread_t thread;
  pthread_attr_t attributes;
  char byte;
  sem_init(&g_semaphore, 0, 1);
  g_file = memfd_create("file", MFD_CLOEXEC);
  g_shared_file = memfd_create("shared", MFD_CLOEXEC);
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarm, NULL);
  pthread_spin_init(&g_spin, PTHREAD_PROCESS_PRIVATE);
  if (pipe(g_pipe) != 0 || pthread_create(&thread, NULL, hold, NULL) != 0 || read(g_pipe[0], &byte, 1) != 1) return 1;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  if (pthread_create(&thread, &attributes, run, NULL) != 0) return 1;
  pthread_join(thread, NULL);
  return 0;
}
