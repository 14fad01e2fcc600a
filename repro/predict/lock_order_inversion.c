// Mechanism: one thread takes from_mu and then to_mu. Another thread takes to_mu and then from_mu. The second thread
//            begins when the first has released both locks, so nothing hangs.
// To blame:  the two orders. If both threads are between their two locks at the same moment, each waits for the other
//            one for ever.
// User sees: nothing, until the program hangs one day.
// Fix:       take both locks in one order everywhere.
// Repaired:  both threads take from_mu first.
//            In these variants the orders are reported, too:
//            ring:    three threads and three locks.
//            rwlock:  the first lock is a rwlock. One thread holds it for reading, and the other one wants it for
//                     writing.
//            wait:    the second thread holds both locks, and takes from_mu again at the end of a wait for a condition.
//            These variants must be silent:
//            gate:    both threads hold a third lock all the time.
//            spin:    the same with a spinlock as the third lock.
//            readers: the first lock is a rwlock, and both threads hold it for reading.
//            tried:   the second lock is taken by trylock.
//            timed:   the second lock is taken with a deadline.
//            joined:  the first thread is joined before the second one is made.
//            before:  main takes from_mu and then to_mu itself, before the thread with the other order is made.
//            one:     one thread takes the locks in both orders.
//            unlike:  the second thread takes third_mu instead of from_mu, so the two orders make no ring.
//            remade:  after the first thread, from_mu is destroyed and initialised again.
//            reused:  after the first thread, another lock gets the memory of from_mu.
//            fork:    a forked child takes the locks in the other order.
//
// EXPECT-OPTIONS: --lock-order
// EXPECT-BARE: ok
// EXPECT: lock-order-inversion possible/proven may-hang holder=debit start=debit victims=0
// EXPECT-STACK: culprit debit@debit_first
// EXPECT-STACK: stack debit@debit_second
//
// EXPECT-BARE(ring): ok
// EXPECT(ring): lock-order-inversion possible/proven may-hang lock=from_mu holder=debit start=debit victims=0
// EXPECT-STACK(ring): culprit debit@debit_first
// EXPECT-STACK(ring): stack debit@debit_second
//
// EXPECT-BARE(rwlock): ok
// EXPECT(rwlock): lock-order-inversion possible/proven may-hang lock=from_rw holder=debit start=debit victims=0
// EXPECT-STACK(rwlock): culprit debit@debit_first
// EXPECT-STACK(rwlock): stack debit@debit_second
//
// EXPECT-BARE(wait): ok
// EXPECT(wait): lock-order-inversion possible/proven may-hang lock=from_mu holder=debit start=debit victims=0
// EXPECT-STACK(wait): culprit debit@debit_first
// EXPECT-STACK(wait): stack debit@debit_second
//
// EXPECT-BARE(gate): ok
// EXPECT-NONE(gate)
// EXPECT-BARE(spin): ok
// EXPECT-NONE(spin)
// EXPECT-BARE(readers): ok
// EXPECT-NONE(readers)
// EXPECT-BARE(tried): ok
// EXPECT-NONE(tried)
// EXPECT-BARE(timed): ok
// EXPECT-NONE(timed)
// EXPECT-BARE(joined): ok
// EXPECT-NONE(joined)
// EXPECT-BARE(before): ok
// EXPECT-NONE(before)
// EXPECT-BARE(one): ok
// EXPECT-NONE(one)
// EXPECT-BARE(unlike): ok
// EXPECT-NONE(unlike)
// EXPECT-BARE(remade): ok
// EXPECT-NONE(remade)
// EXPECT-BARE(reused): ok
// EXPECT-NONE(reused)
// EXPECT-BARE(fork): ok
// EXPECT-NONE(fork)
#include <pthread.h>
#include <time.h>

#include "../baton.h"

static pthread_mutex_t from_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t to_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t third_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t from_rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t third_spin;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static struct baton first_done, second_done, all_done;

#if defined RWLOCK || defined READERS
#define TAKE_FROM() pthread_rwlock_rdlock(&from_rw)
#define GIVE_FROM() pthread_rwlock_unlock(&from_rw)
#else
#define TAKE_FROM() pthread_mutex_lock(&from_mu)
#define GIVE_FROM() pthread_mutex_unlock(&from_mu)
#endif

#if defined GATE
#define ENTER_GATE() pthread_mutex_lock(&third_mu)
#define LEAVE_GATE() pthread_mutex_unlock(&third_mu)
#elif defined SPIN
#define ENTER_GATE() pthread_spin_lock(&third_spin)
#define LEAVE_GATE() pthread_spin_unlock(&third_spin)
#else
#define ENTER_GATE() ((void)0)
#define LEAVE_GATE() ((void)0)
#endif

// Takes and releases the second thread's second lock.
static void take_inner(void) {
  struct timespec past = {0, 0};
#if defined RWLOCK
  pthread_rwlock_wrlock(&from_rw);
#elif defined TRIED
  if (pthread_mutex_trylock(&from_mu) != 0) abort();
#elif defined TIMED
  if (pthread_mutex_timedlock(&from_mu, &past) != 0) abort();
#elif defined UNLIKE
  pthread_mutex_lock(&third_mu);
#else
  TAKE_FROM();
#endif
#if defined RWLOCK
  pthread_rwlock_unlock(&from_rw);
#elif defined UNLIKE
  pthread_mutex_unlock(&third_mu);
#else
  GIVE_FROM();
#endif
  (void)past;
}

static void backwards(void) {
  ENTER_GATE();
#if defined REPAIRED
  pthread_mutex_lock(&from_mu);
  pthread_mutex_lock(&to_mu);
  pthread_mutex_unlock(&to_mu);
  pthread_mutex_unlock(&from_mu);
#elif defined WAIT
  // This thread takes from_mu first, too. But the wait releases from_mu, and takes it again while to_mu is held.
  struct timespec past = {0, 0};
  pthread_mutex_lock(&from_mu);
  pthread_mutex_lock(&to_mu);
  pthread_cond_timedwait(&never, &from_mu, &past);
  pthread_mutex_unlock(&to_mu);
  pthread_mutex_unlock(&from_mu);
#else
  pthread_mutex_lock(&to_mu);
  take_inner();
  pthread_mutex_unlock(&to_mu);
#endif
  LEAVE_GATE();
  (void)never, (void)take_inner;
}

static void* debit(void* unused) {
  pthread_setname_np(pthread_self(), "debit");
  ENTER_GATE();
  TAKE_FROM();                  // MARK: debit_first
  pthread_mutex_lock(&to_mu);   // MARK: debit_second
  pthread_mutex_unlock(&to_mu);
  GIVE_FROM();
  LEAVE_GATE();
#if defined ONE
  backwards();
#endif
  baton_pass(first_done);
#if !defined JOINED
  baton_wait(all_done);
#endif
  return unused;
}

static void* credit(void* unused) {
  pthread_setname_np(pthread_self(), "credit");
#if defined RING
  pthread_mutex_lock(&to_mu);
  pthread_mutex_lock(&third_mu);
  pthread_mutex_unlock(&third_mu);
  pthread_mutex_unlock(&to_mu);
#elif !defined ONE
  backwards();
#endif
  (void)backwards;
  baton_pass(second_done);
  baton_wait(all_done);
  return unused;
}

#if defined RING
static void* audit(void* unused) {
  pthread_setname_np(pthread_self(), "audit");
  pthread_mutex_lock(&third_mu);
  pthread_mutex_lock(&from_mu);
  pthread_mutex_unlock(&from_mu);
  pthread_mutex_unlock(&third_mu);
  baton_pass(second_done);
  baton_wait(all_done);
  return unused;
}
#endif

static void* idle(void* unused) {
  baton_wait(all_done);
  return unused;
}

int main(void) {
  pthread_t thread[3];
  first_done = baton_make();
  pthread_spin_init(&third_spin, PTHREAD_PROCESS_PRIVATE);
  second_done = baton_make();
  all_done = baton_make();
  // With this thread the process has a second thread in every variant.
  pthread_create(&thread[2], NULL, idle, NULL);
#if defined BEFORE
  pthread_mutex_lock(&from_mu);
  pthread_mutex_lock(&to_mu);
  pthread_mutex_unlock(&to_mu);
  pthread_mutex_unlock(&from_mu);
#else
  pthread_create(&thread[0], NULL, debit, NULL);
  baton_wait(first_done);
#endif
#if defined JOINED
  pthread_join(thread[0], NULL);
#elif defined REMADE
  pthread_mutex_destroy(&from_mu);
  pthread_mutex_init(&from_mu, NULL);
#elif defined REUSED
  from_mu = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
#elif defined FORK
  const pid_t child = fork();
  if (child == 0) {
    pthread_t again;
    pthread_create(&again, NULL, credit, NULL);
    baton_wait(second_done);
    _exit(0);
  }
  if (end_of(child) != 0) abort();
#endif
#if !defined FORK
  pthread_create(&thread[1], NULL, credit, NULL);
  baton_wait(second_done);
#endif
#if defined RING
  pthread_t third;
  pthread_create(&third, NULL, audit, NULL);
  baton_wait(second_done);
#endif
  // At most four threads wait for this baton.
  for (int i = 0; i < 4; ++i) baton_pass(all_done);
#if defined RING
  pthread_join(third, NULL);
#endif
#if !defined BEFORE && !defined JOINED
  pthread_join(thread[0], NULL);
#endif
#if !defined FORK
  pthread_join(thread[1], NULL);
#endif
  pthread_join(thread[2], NULL);
  (void)debit, (void)from_mu, (void)third_mu, (void)from_rw;
  return 0;
}
