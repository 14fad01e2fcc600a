// Mechanism: a worker takes cache_mu and releases it. Main forks while the lock is free, and the child takes the lock.
// To blame:  the fork. If main forks while the worker holds the lock, the child waits for the lock for ever.
// User sees: nothing, except that a child hangs now and then.
// Fix:       hold the lock across the fork by handlers of pthread_atfork(), or exec in the child.
// Repaired:  such handlers hold the lock across the fork.
//            In this variant the lock is reported, too:
//            rwlock:  the worker takes a rwlock for writing, and the child takes it for reading.
//            These variants must be silent:
//            readers: the worker and the child take the rwlock for reading.
//            reset:   a child handler initialises the lock anew.
//            joined:  the worker is joined before the fork.
//            gate:    the worker takes the lock only under another lock, which main holds across the fork.
//            spin:    the same with a spinlock as the other lock.
//            tried:   the child takes the lock by trylock.
//            execs:   the child execs.
//            forker:  only main takes the lock in the parent.
//            remade:  the child initialises the lock anew before it takes it.
//
// EXPECT-OPTIONS: --predict
// EXPECT-BARE: ok
// EXPECT: racy-orphan possible/proven may-hang lock=cache_mu holder=worker start=work victims=0
// EXPECT-STACK: culprit work@taken
// EXPECT-STACK: stack look_up@child
// EXPECT-STACK: fork main@fork
//
// EXPECT-BARE(rwlock): ok
// EXPECT(rwlock): racy-orphan possible/proven may-hang lock=cache_rw holder=worker start=work victims=0
// EXPECT-STACK(rwlock): culprit work@taken
// EXPECT-STACK(rwlock): stack look_up@child
//
// EXPECT-BARE(readers): ok
// EXPECT-NONE(readers)
// EXPECT-BARE(reset): ok
// EXPECT-NONE(reset)
// EXPECT-BARE(joined): ok
// EXPECT-NONE(joined)
// EXPECT-BARE(gate): ok
// EXPECT-NONE(gate)
// EXPECT-BARE(spin): ok
// EXPECT-NONE(spin)
// EXPECT-BARE(tried): ok
// EXPECT-NONE(tried)
// EXPECT-BARE(execs): ok
// EXPECT-NONE(execs)
// EXPECT-BARE(forker): ok
// EXPECT-NONE(forker)
// EXPECT-BARE(remade): ok
// EXPECT-NONE(remade)
#include <pthread.h>

#include "../baton.h"

static pthread_mutex_t cache_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t gate_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t cache_rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t gate_spin;
static struct baton worker_done, main_done;

#if defined RWLOCK
#define TAKE() pthread_rwlock_wrlock(&cache_rw)
#define GIVE() pthread_rwlock_unlock(&cache_rw)
#elif defined READERS
#define TAKE() pthread_rwlock_rdlock(&cache_rw)
#define GIVE() pthread_rwlock_unlock(&cache_rw)
#else
#define TAKE() pthread_mutex_lock(&cache_mu)
#define GIVE() pthread_mutex_unlock(&cache_mu)
#endif
#if defined RWLOCK || defined READERS
#define TAKE_IN_CHILD() pthread_rwlock_rdlock(&cache_rw)
#elif defined TRIED
#define TAKE_IN_CHILD() pthread_mutex_trylock(&cache_mu)
#else
#define TAKE_IN_CHILD() TAKE()
#endif

#if defined GATE
#define ENTER_GATE() pthread_mutex_lock(&gate_mu)
#define LEAVE_GATE() pthread_mutex_unlock(&gate_mu)
#elif defined SPIN
#define ENTER_GATE() pthread_spin_lock(&gate_spin)
#define LEAVE_GATE() pthread_spin_unlock(&gate_spin)
#else
#define ENTER_GATE() ((void)0)
#define LEAVE_GATE() ((void)0)
#endif

static void* work(void* unused) {
  pthread_setname_np(pthread_self(), "worker");
  ENTER_GATE();
#if !defined FORKER
  TAKE();  // MARK: taken
  GIVE();
#endif
  LEAVE_GATE();
  baton_pass(worker_done);
#if !defined JOINED
  baton_wait(main_done);
#endif
  return unused;
}

static __attribute__((noinline)) int look_up(void) {
  if (TAKE_IN_CHILD() != 0) return 1;  // MARK: child
  return GIVE();
}

#if defined REPAIRED || defined RESET
static void hold(void) { pthread_mutex_lock(&cache_mu); }
static void release(void) { pthread_mutex_unlock(&cache_mu); }
#endif
#if defined RESET
static void reset(void) { pthread_mutex_init(&cache_mu, NULL); }
#endif

int main(void) {
  pthread_t worker;
  worker_done = baton_make();
  pthread_spin_init(&gate_spin, PTHREAD_PROCESS_PRIVATE);
  main_done = baton_make();
#if defined REPAIRED
  pthread_atfork(hold, release, release);
#elif defined RESET
  pthread_atfork(hold, release, reset);
#endif
  pthread_create(&worker, NULL, work, NULL);
  baton_wait(worker_done);
#if defined JOINED
  pthread_join(worker, NULL);
#elif defined FORKER
  TAKE();
  GIVE();
#endif
  ENTER_GATE();
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
#if defined EXECS
    execl("/bin/true", "true", NULL);
#elif defined REMADE
    cache_mu = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
#endif
    _exit(look_up());
  }
  const int result = end_of(child);
  LEAVE_GATE();
#if !defined JOINED
  baton_pass(main_done);
  pthread_join(worker, NULL);
#endif
  (void)gate_mu, (void)cache_mu, (void)cache_rw;
  return result;
}
