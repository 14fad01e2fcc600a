// With --cure=self-held the child owns each mutex that the forking thread held. A recursive mutex keeps its count. The
// child can unlock the mutex, and until then no other thread can lock it. If the owner of a robust mutex ends, the next
// thread that locks it gets EOWNERDEAD. The cure does not change a mutex in memory that parent and child share. The
// program tries every kind of mutex, prints what went wrong, and runs with the shim.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;

static void expect(const char* scene, const char* what, int got, int wanted) {
  if (got == wanted) return;
  printf("%s: %s: got %d, expected %d\n", scene, what, got, wanted);
  fflush(stdout);
  failures = 1;
}

static void make_mutex(pthread_mutex_t* mutex, int type, int robust, int protocol) {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, type);
  pthread_mutexattr_setrobust(&kind, robust);
  pthread_mutexattr_setprotocol(&kind, protocol);
  pthread_mutex_init(mutex, &kind);
}

static void* try_main(void* mutex) {
  const int result = pthread_mutex_trylock(mutex);
  if (result == 0) pthread_mutex_unlock(mutex);
  return (void*)(long)result;
}

static void* die_main(void* mutex) {
  pthread_mutex_lock(mutex);
  return NULL;
}

static int try_elsewhere(pthread_mutex_t* mutex) {
  pthread_t other;
  void* result = NULL;
  if (pthread_create(&other, NULL, try_main, mutex) != 0 || pthread_join(other, &result) != 0) abort();
  return (int)(long)result;
}

static int end_of(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) abort();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// `outer` and `inner` are mutexes of one kind. The parent locked `outer` first. The child unlocks `outer` first. libc
// keeps a list of the robust mutexes that a thread holds, so this order removes an entry that is not the newest.
static void use_in_child(const char* scene, pthread_mutex_t* outer, pthread_mutex_t* inner, int depth, int robust) {
  alarm(20);
  expect(scene, "another thread's trylock of the outer", try_elsewhere(outer), EBUSY);
  expect(scene, "another thread's trylock of the inner", try_elsewhere(inner), EBUSY);
  for (int i = 0; i < depth; ++i) expect(scene, "unlock of the outer", pthread_mutex_unlock(outer), 0);
  if (failures) _exit(1);  // the calls below would hang
  expect(scene, "another thread's trylock of the free outer", try_elsewhere(outer), 0);
  expect(scene, "unlock of the inner", pthread_mutex_unlock(inner), 0);
  expect(scene, "lock of the outer", pthread_mutex_lock(outer), 0);
  expect(scene, "lock of the inner", pthread_mutex_lock(inner), 0);
  expect(scene, "second unlock of the inner", pthread_mutex_unlock(inner), 0);
  expect(scene, "second unlock of the outer", pthread_mutex_unlock(outer), 0);
  if (robust) {
    pthread_t dying;
    if (pthread_create(&dying, NULL, die_main, outer) != 0 || pthread_join(dying, NULL) != 0) abort();
    expect(scene, "lock after its owner died", pthread_mutex_lock(outer), EOWNERDEAD);
    pthread_mutex_consistent(outer);
    pthread_mutex_unlock(outer);
  }
  _exit(failures);
}

static void* wait_main(void* mutex) {
  pthread_mutex_lock(mutex);
  pthread_mutex_unlock(mutex);
  return NULL;
}

static int is_awaited(const pthread_mutex_t* mutex) {
  const unsigned word = (unsigned)__atomic_load_n(&mutex->__data.__lock, __ATOMIC_SEQ_CST);
  return word == 2 || (word & 0x80000000U) != 0;
}

static void fork_with(int type, int robust, int protocol, int waiters) {
  char scene[64];
  snprintf(scene, sizeof scene, "type %d robust %d protocol %d waiters %d", type, robust, protocol, waiters);
  pthread_mutex_t outer;
  pthread_mutex_t inner;
  make_mutex(&outer, type, robust, protocol);
  make_mutex(&inner, type, robust, protocol);
  const int depth = type == PTHREAD_MUTEX_RECURSIVE ? 3 : 1;
  for (int i = 0; i < depth; ++i) pthread_mutex_lock(&outer);
  pthread_mutex_lock(&inner);
  pthread_t waiter;
  if (waiters != 0) {
    if (pthread_create(&waiter, NULL, wait_main, &outer) != 0) abort();
    while (!is_awaited(&outer)) sched_yield();
  }
  const pid_t child = fork();
  if (child == 0) use_in_child(scene, &outer, &inner, depth, robust == PTHREAD_MUTEX_ROBUST);
  expect(scene, "child", end_of(child), 0);
  if (failures) exit(1);
  expect(scene, "the parent's unlock", pthread_mutex_unlock(&inner), 0);
  for (int i = 0; i < depth; ++i) expect(scene, "the parent's unlock", pthread_mutex_unlock(&outer), 0);
  if (waiters != 0) pthread_join(waiter, NULL);
}

static void* inherit_main(void* mutex) {
  expect("a robust mutex whose owner dies", "lock in the child", pthread_mutex_lock(mutex), EOWNERDEAD);
  _exit(failures);
}

// The parent holds a robust mutex and forks. The child forks a grandchild, which can unlock the mutex. Then the only
// thread that the child inherited ends, and another thread of the child gets the mutex with EOWNERDEAD.
static void end_holder_in_child(int protocol) {
  const char* const scene = "a robust mutex whose owner dies";
  pthread_mutex_t mutex;
  make_mutex(&mutex, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, protocol);
  pthread_mutex_lock(&mutex);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      expect(scene, "the grandchild's unlock", pthread_mutex_unlock(&mutex), 0);
      _exit(failures);
    }
    expect(scene, "grandchild", end_of(grandchild), 0);
    pthread_t heir;
    if (pthread_create(&heir, NULL, inherit_main, &mutex) != 0) abort();
    pthread_exit(NULL);
  }
  expect(scene, "child", end_of(child), 0);
  expect(scene, "the parent's unlock", pthread_mutex_unlock(&mutex), 0);
}

// If a mutex is in shared memory, only the parent holds the mutex. This is so even if the attributes of the mutex do
// not say that the mutex is shared.
static void leave_shared_memory_alone(void) {
  const char* const scene = "a mutex in shared memory";
  pthread_mutex_t* const mutex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  make_mutex(mutex, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
  pthread_mutex_lock(mutex);
  const pid_t child = fork();
  if (child == 0) {
    expect(scene, "the child's unlock", pthread_mutex_unlock(mutex), EPERM);
    _exit(failures);
  }
  expect(scene, "child", end_of(child), 0);
  expect(scene, "the parent's unlock", pthread_mutex_unlock(mutex), 0);
}

// `leave` makes a child, and the child forks again while it holds a mutex. `leave` calls fork(), or makes a fork that
// the shim does not record. After fork(), `leave` may also call daemon() in the child, which gives the child's thread a
// new id.
static void fork_as(const char* scene, pid_t (*leave)(void)) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  int ends[2];
  int result = 1;
  if (pipe(ends) != 0) abort();
  const pid_t child = leave();
  if (child == 0) {
    fork_with(PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE, 0);
    fork_with(PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE, 0);
    if (write(ends[1], &failures, sizeof failures) != sizeof failures) abort();
    _exit(0);
  }
  expect(scene, "end", end_of(child), 0);
  close(ends[1]);
  expect(scene, "bytes of the answer", (int)read(ends[0], &result, sizeof result), sizeof result);
  close(ends[0]);
  expect(scene, "failures", result, 0);
}

static pid_t fork_again(void) {
  const pid_t child = fork();
  if (child == 0 && daemon(1, 1) != 0) abort();
  return child;
}

// After this fork libc still uses the parent's thread id in the child. Locks that the child takes record that id.
static pid_t fork_by_syscall(void) { return (pid_t)syscall(SYS_fork); }

// No hook of the shim sees this fork.
static pid_t fork_in_line(void) {
  long result = SYS_fork;
  __asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
  return (pid_t)result;
}

static void* idle_main(void* unused) { return unused; }

int main(void) {
  const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
  fork_as("a child", fork);
  fork_as("a daemon", fork_again);
  // The first round runs while the process has never had a second thread.
  for (int round = 0; round < 2; ++round) {
    for (unsigned i = 0; i < sizeof types / sizeof *types; ++i) {
      fork_with(types[i], PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE, 0);
      fork_with(types[i], PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE, 0);
      fork_with(types[i], PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT, 0);
      fork_with(types[i], PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_INHERIT, 0);
    }
    end_holder_in_child(PTHREAD_PRIO_NONE);
    end_holder_in_child(PTHREAD_PRIO_INHERIT);
    leave_shared_memory_alone();
    fork_as("a child by syscall()", fork_by_syscall);
    fork_as("a child by a system call in line", fork_in_line);
    pthread_t idle;
    if (pthread_create(&idle, NULL, idle_main, NULL) != 0 || pthread_join(idle, NULL) != 0) abort();
  }
  for (unsigned i = 0; i < sizeof types / sizeof *types; ++i) {
    fork_with(types[i], PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE, 1);
    fork_with(types[i], PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE, 1);
    fork_with(types[i], PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT, 1);
    fork_with(types[i], PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_INHERIT, 1);
  }
  return failures;
}
