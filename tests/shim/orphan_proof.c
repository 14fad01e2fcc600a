// In each scene except "at_once" and "other_handlers" a lock looks like an orphan, but is not lost. --on-orphan must
// not recover the lock. The lock is a semaphore that threads use as a signal, a semaphore that a signal handler posts,
// a lock that a thread of the child holds, a lock that the child has initialised again, or a lock in shared memory that
// a thread of the parent releases. In the scenes "at_once" and "other_handlers" the lock is an orphan. In "at_once"
// several threads of the child request this lock, and only one of these threads may recover the lock. In
// "other_handlers" the child has handlers that cannot post the semaphore. Without the shim each scene succeeds except
// these two. The program prints what went wrong.
#include <errno.h>
#include <forksight/annotate.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kThreads = 4, kRounds = 40 };

static int failures;

static void expect(const char* what, long got, long wanted) {
  if (got == wanted) return;
  printf("%s: got %ld, expected %ld\n", what, got, wanted);
  fflush(stdout);
  failures = 1;
}

static pthread_t start(void* (*run)(void*), void* argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, argument) != 0) abort();
  return thread;
}

static void end_in(pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) abort();
  expect("end of the child", status, 0);
}

static void pause_until(volatile int* word) {
  while (!__atomic_load_n(word, __ATOMIC_ACQUIRE)) sched_yield();
}
static void say_to(volatile int* word) { __atomic_store_n(word, 1, __ATOMIC_RELEASE); }

static volatile int g_parent_is_ready;
static volatile int g_inside;
static volatile int g_leave;

// A queue: `g_items` counts its items. The parent's consumer has taken items. The child has another consumer and
// another producer.
static sem_t g_items;
static volatile int g_count;

static void* consume_in_parent(void* unused) {
  for (int i = 0; i < 3; ++i) sem_wait(&g_items);
  say_to(&g_parent_is_ready);
  pause();
  return unused;
}

static void* consume(void* unused) {
  say_to(&g_inside);
  sem_wait(&g_items);
  expect("items when the consumer wakes", __atomic_load_n(&g_count, __ATOMIC_SEQ_CST), 1);
  return unused;
}

// `first`: the number of items when the queue is made.
static void use_as_signal(unsigned first) {
  sem_init(&g_items, 0, first);
  start(consume_in_parent, NULL);
  for (unsigned i = first; i < 3; ++i) sem_post(&g_items);
  pause_until(&g_parent_is_ready);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const pthread_t consumer = start(consume, NULL);
    pause_until(&g_inside);
    const struct timespec moment = {0, 50000000};
    nanosleep(&moment, NULL);
    __atomic_store_n(&g_count, 1, __ATOMIC_SEQ_CST);
    sem_post(&g_items);
    pthread_join(consumer, NULL);
    _exit(failures);
  }
  end_in(child);
}
static void signal_from_none(void) { use_as_signal(0); }
static void signal_from_three(void) { use_as_signal(3); }

// The queue begins with one item. So in the parent, its semaphore looks like a lock. The child has a second thread,
// which may post the semaphore. So the shim must not recover the semaphore.
static void* take_one(void* unused) {
  sem_wait(&g_items);
  say_to(&g_parent_is_ready);
  pause();
  return unused;
}
static void signal_from_one(void) {
  sem_init(&g_items, 0, 1);
  start(take_one, NULL);
  pause_until(&g_parent_is_ready);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const pthread_t consumer = start(consume, NULL);
    pause_until(&g_inside);
    const struct timespec moment = {0, 50000000};
    nanosleep(&moment, NULL);
    __atomic_store_n(&g_count, 1, __ATOMIC_SEQ_CST);
    sem_post(&g_items);
    pthread_join(consumer, NULL);
    _exit(failures);
  }
  end_in(child);
}

// The semaphore looks like a lock, and the child has one thread. A handler that the child itself has asked for posts
// the semaphore.
static volatile sig_atomic_t g_has_posted;

static void post_one(int unused) {
  (void)unused;
  g_has_posted = 1;
  sem_post(&g_items);
}

static void set_handler(int number, void (*handler)(int)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  if (sigaction(number, &action, NULL) != 0) abort();
}

static void handler_posts(void) {
  sem_init(&g_items, 0, 1);
  start(take_one, NULL);
  pause_until(&g_parent_is_ready);
  const pid_t child = fork();
  if (child == 0) {
    const struct itimerval soon = {{0, 0}, {0, 200000}};
    set_handler(SIGALRM, post_one);
    setitimer(ITIMER_REAL, &soon, NULL);
    while (sem_wait(&g_items) != 0 && errno == EINTR) {
    }
    expect("whether the handler has run", g_has_posted, 1);
    _exit(failures);
  }
  end_in(child);
}

// The child has handlers of faults, one for crashes, and one of a signal that it blocks. None of them can post.
static void end_now(int unused) {
  (void)unused;
  _exit(3);
}

static void other_handlers(void) {
  sem_init(&g_items, 0, 1);
  start(take_one, NULL);
  pause_until(&g_parent_is_ready);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    set_handler(SIGSEGV, end_now);
    set_handler(SIGABRT, end_now);
    set_handler(SIGUSR1, post_one);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    expect("wait for the recovered semaphore", sem_wait(&g_items), 0);
    _exit(failures);
  }
  end_in(child);
}

static pthread_rwlock_t g_rwlock = PTHREAD_RWLOCK_INITIALIZER;

static void* read_in_parent(void* unused) {
  pthread_rwlock_rdlock(&g_rwlock);
  say_to(&g_parent_is_ready);
  pause();
  return unused;
}

static void* read_for_a_while(void* unused) {
  pthread_rwlock_rdlock(&g_rwlock);
  say_to(&g_inside);
  pause_until(&g_leave);
  pthread_rwlock_unlock(&g_rwlock);
  return unused;
}

static int write_soon(void) {
  struct timespec soon;
  clock_gettime(CLOCK_REALTIME, &soon);
  soon.tv_nsec += 100000000;
  if (soon.tv_nsec >= 1000000000) soon.tv_nsec -= 1000000000, ++soon.tv_sec;
  return pthread_rwlock_timedwrlock(&g_rwlock, &soon);
}

static void write_beside_reader(void) {
  const pthread_t reader = start(read_for_a_while, NULL);
  pause_until(&g_inside);
  expect("write beside a live reader", write_soon(), ETIMEDOUT);
  say_to(&g_leave);
  pthread_join(reader, NULL);
}

// One reader is lost, and a live thread reads, too. No thread may write until the live reader has unlocked.
static void live_reader(void) {
  start(read_in_parent, NULL);
  pause_until(&g_parent_is_ready);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    write_beside_reader();
    _exit(failures);
  }
  end_in(child);
}

static void make_rwlock_anew(void) { pthread_rwlock_init(&g_rwlock, NULL); }

// The child initialises the lock again, as libraries do in their atfork handlers.
static void reader_of_a_new_lock(void) {
  pthread_atfork(NULL, NULL, make_rwlock_anew);
  live_reader();
}

static void writer_of_a_new_lock(void) {
  pthread_atfork(NULL, NULL, make_rwlock_anew);
  start(read_for_a_while, NULL);
  pause_until(&g_inside);
  say_to(&g_leave);
  pthread_rwlock_wrlock(&g_rwlock);
  g_inside = g_leave = 0;
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    write_beside_reader();
    _exit(failures);
  }
  end_in(child);
  pthread_rwlock_unlock(&g_rwlock);
}

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_spinlock_t g_spin;
static volatile int g_threads_inside;
static volatile int g_go;

static void* hold_both(void* unused) {
  pthread_mutex_lock(&g_mutex);
  pthread_spin_lock(&g_spin);
  say_to(&g_parent_is_ready);
  pause();
  return unused;
}

static void be_inside(const char* what) {
  expect(what, __atomic_add_fetch(&g_threads_inside, 1, __ATOMIC_SEQ_CST), 1);
  for (int i = 0; i < 200; ++i) sched_yield();
  __atomic_sub_fetch(&g_threads_inside, 1, __ATOMIC_SEQ_CST);
}

static void* enter_mutex(void* unused) {
  pause_until(&g_go);
  pthread_mutex_lock(&g_mutex);
  be_inside("threads inside of the mutex");
  pthread_mutex_unlock(&g_mutex);
  return unused;
}

// Several threads of the child lock an orphaned mutex at once. The shim must recover the mutex only once. After that
// only one thread at a time may be between lock and unlock.
static void at_once(void) {
  pthread_spin_init(&g_spin, PTHREAD_PROCESS_PRIVATE);
  start(hold_both, NULL);
  pause_until(&g_parent_is_ready);
  for (int round = 0; round < kRounds && !failures; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      pthread_t threads[kThreads];
      for (int i = 0; i < kThreads; ++i) threads[i] = start(enter_mutex, NULL);
      say_to(&g_go);
      for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
      _exit(failures);
    }
    end_in(child);
  }
}

// An annotated lock is in shared memory. A thread of the parent holds it and releases it after the fork. The release is
// visible in the child, so the lock is not an orphan.
static int* g_shared_word;

static void* hold_shared(void* unused) {
  FORKSIGHT_LOCK_ACQUIRED(g_shared_word, "shared lock");
  say_to(&g_parent_is_ready);
  pause_until(&g_leave);
  FORKSIGHT_LOCK_RELEASED(g_shared_word);
  __atomic_store_n(g_shared_word, 0, __ATOMIC_RELEASE);
  return unused;
}

static void custom_lock_in_shared_memory(void) {
  g_shared_word = mmap(NULL, sizeof *g_shared_word, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (g_shared_word == MAP_FAILED) abort();
  *g_shared_word = 1;
  const pthread_t holder = start(hold_shared, NULL);
  pause_until(&g_parent_is_ready);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    FORKSIGHT_LOCK_WAITING(g_shared_word, "shared lock");
    while (__atomic_load_n(g_shared_word, __ATOMIC_ACQUIRE)) sched_yield();
    FORKSIGHT_LOCK_ACQUIRED(g_shared_word, "shared lock");
    FORKSIGHT_LOCK_RELEASED(g_shared_word);
    _exit(0);
  }
  const struct timespec moment = {0, 50000000};
  // After this time the child probably waits for the lock. The scene also succeeds if the child comes later.
  nanosleep(&moment, NULL);
  say_to(&g_leave);
  pthread_join(holder, NULL);
  end_in(child);
}

static const struct {
  const char* name;
  void (*run)(void);
} kScenes[] = {{"signal_from_none", signal_from_none},
               {"signal_from_one", signal_from_one},
               {"signal_from_three", signal_from_three},
               {"handler_posts", handler_posts},
               {"other_handlers", other_handlers},
               {"live_reader", live_reader},
               {"reader_of_a_new_lock", reader_of_a_new_lock},
               {"writer_of_a_new_lock", writer_of_a_new_lock},
               {"custom_lock_in_shared_memory", custom_lock_in_shared_memory},
               {"at_once", at_once}};

int main(int argc, char** argv) {
  for (unsigned i = 0; argc == 2 && i < sizeof kScenes / sizeof *kScenes; ++i) {
    if (strcmp(argv[1], kScenes[i].name) != 0) continue;
    kScenes[i].run();
    return failures;
  }
  return 2;
}
