// In these scenes the lock orders can lead to a deadlock. forksight must report each scene, with the locks that the
// line of the scene in check_orders.py names.
#include <stdint.h>

#include "orders.h"

static pthread_mutex_t from_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t to_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t third_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t gate_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table_rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t gate_rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t inner_sem, items_sem;

static void forwards(void) { take_both(&from_mu, &to_mu); }
static void backwards(void) { take_both(&to_mu, &from_mu); }

static void* go(void* unused) {
  forwards();
  return unused;
}
static void* go_in_turn(void* unused) {
  forwards();
  end_turn();
  return unused;
}
static void* come_in_turn(void* unused) {
  backwards();
  end_turn();
  return unused;
}
static void plain(void) { TAKE_TURNS(go_in_turn, come_in_turn); }

// --- only chance keeps the two threads apart

// The second thread takes its locks after the first thread has been joined. Only a pipe orders these two events, and
// the shim does not watch pipes.
static struct baton joined_first;
static void* come_when_joined(void* unused) {
  baton_wait(joined_first);
  backwards();
  return unused;
}
static void* go_and_say(void* unused) {
  forwards();
  baton_pass(turn_done);
  return unused;
}
static void after_a_join(void) {
  joined_first = baton_make();
  turn_done = baton_make();
  const pthread_t first = begin(go_and_say);
  const pthread_t second = begin(come_when_joined);
  baton_wait(turn_done);
  end(first);
  baton_pass(joined_first);
  end(second);
}

// The main thread joins the first thread. Then the thread `maker` makes the second thread. Only a pipe orders these two
// events, and the shim does not watch pipes.
static void* make_when_joined(void* unused) {
  baton_wait(joined_first);
  turns_over = baton_make();
  baton_pass(turns_over);
  run(come_in_turn);
  return unused;
}
static void made_by_another(void) {
  joined_first = baton_make();
  turn_done = baton_make();
  const pthread_t maker = begin(make_when_joined);
  const pthread_t first = begin(go_and_say);
  baton_wait(turn_done);
  end(first);
  baton_pass(joined_first);
  end(maker);
}

// Twenty threads run one after the other, so they may have the same id. The thread `lasting` exists all the time. After
// the twenty threads have ended, `lasting` takes the locks in the opposite order.
static void id_used_again(void) {
  joined_first = baton_make();
  const pthread_t lasting = begin(come_when_joined);
  const pthread_t other = begin_idle();
  for (int i = 0; i < 20; ++i) run(go);
  baton_pass(joined_first);
  end(lasting);
  end_idle(other);
}

static void main_beside_thread(void) {
  joined_first = baton_make();
  const pthread_t thread = begin(come_when_joined);
  forwards();
  baton_pass(joined_first);
  end(thread);
}

static void in_child_too(void) {
  const pthread_t other = begin_idle();
  run(go);
  const pid_t child = fork();
  if (child == 0) {
    TAKE_TURNS(go_in_turn, come_in_turn);
    _exit(0);
  }
  if (end_of(child) != 0) abort();
  end_idle(other);
}

// --- more than two locks

static void* second_to_third(void* unused) {
  take_both(&to_mu, &third_mu);
  end_turn();
  return unused;
}
static void* third_to_first(void* unused) {
  take_both(&third_mu, &from_mu);
  end_turn();
  return unused;
}
static void ring(void) { TAKE_TURNS(go_in_turn, second_to_third, third_to_first); }

// --- rwlocks

static void* read_then_lock(void* unused) {
  pthread_rwlock_rdlock(&table_rw);
  pthread_mutex_lock(&to_mu);
  pthread_mutex_unlock(&to_mu);
  pthread_rwlock_unlock(&table_rw);
  end_turn();
  return unused;
}
static void* lock_then_write(void* unused) {
  pthread_mutex_lock(&to_mu);
  pthread_rwlock_wrlock(&table_rw);
  pthread_rwlock_unlock(&table_rw);
  pthread_mutex_unlock(&to_mu);
  end_turn();
  return unused;
}
static void reader_and_writer(void) { TAKE_TURNS(read_then_lock, lock_then_write); }

static void* lock_then_read(void* unused) {
  pthread_mutex_lock(&to_mu);
  pthread_rwlock_rdlock(&table_rw);
  pthread_rwlock_unlock(&table_rw);
  pthread_mutex_unlock(&to_mu);
  end_turn();
  return unused;
}
static void* write_alone(void* unused) {
  pthread_rwlock_wrlock(&table_rw);
  pthread_rwlock_unlock(&table_rw);
  end_turn();
  return unused;
}
static void queued_writer(void) {
  prefer_writers(&table_rw);
  TAKE_TURNS(read_then_lock, lock_then_read, write_alone);
}

// --- locks that are not gates, although they look like gates

static void* go_as_reader(void* unused) {
  pthread_rwlock_rdlock(&gate_rw);
  forwards();
  pthread_rwlock_unlock(&gate_rw);
  end_turn();
  return unused;
}
static void* come_as_reader(void* unused) {
  pthread_rwlock_rdlock(&gate_rw);
  backwards();
  pthread_rwlock_unlock(&gate_rw);
  end_turn();
  return unused;
}
static void readers_gate(void) { TAKE_TURNS(go_as_reader, come_as_reader); }

static void leave_early(pthread_mutex_t* first, pthread_mutex_t* second) {
  pthread_mutex_lock(&gate_mu);
  pthread_mutex_lock(first);
  pthread_mutex_unlock(&gate_mu);
  pthread_mutex_lock(second);
  pthread_mutex_unlock(second);
  pthread_mutex_unlock(first);
  end_turn();
}
static void* go_left_early(void* unused) {
  leave_early(&from_mu, &to_mu);
  return unused;
}
static void* come_left_early(void* unused) {
  leave_early(&to_mu, &from_mu);
  return unused;
}
static void gate_left_early(void) { TAKE_TURNS(go_left_early, come_left_early); }

// Each thread already holds its first lock when it waits for the semaphore.
static void enter_late(pthread_mutex_t* first, pthread_mutex_t* second) {
  pthread_mutex_lock(first);
  sem_wait(&inner_sem);
  pthread_mutex_lock(second);
  pthread_mutex_unlock(second);
  sem_post(&inner_sem);
  pthread_mutex_unlock(first);
  end_turn();
}
static void* go_entered_late(void* unused) {
  enter_late(&from_mu, &to_mu);
  return unused;
}
static void* come_entered_late(void* unused) {
  enter_late(&to_mu, &from_mu);
  return unused;
}
static void gate_entered_late(void) {
  sem_init(&inner_sem, 0, 1);
  TAKE_TURNS(go_entered_late, come_entered_late);
}

// The semaphore lets two threads in at the same time, so it does not keep them apart.
static void* go_counted(void* unused) {
  sem_wait(&items_sem);
  forwards();
  sem_post(&items_sem);
  end_turn();
  return unused;
}
static void* come_counted(void* unused) {
  sem_wait(&items_sem);
  backwards();
  sem_post(&items_sem);
  end_turn();
  return unused;
}
static void counting_semaphore(void) {
  sem_init(&items_sem, 0, 2);
  TAKE_TURNS(go_counted, come_counted);
}

// --- after the wait for a condition, pthread_cond_timedwait() takes the mutex again

static void* wait_in_between(void* unused) {
  struct timespec past = {0, 0};
  pthread_mutex_lock(&from_mu);
  pthread_mutex_lock(&to_mu);
  pthread_cond_timedwait(&never, &from_mu, &past);
  pthread_mutex_unlock(&to_mu);
  pthread_mutex_unlock(&from_mu);
  end_turn();
  return unused;
}
static void condition(void) { TAKE_TURNS(go_in_turn, wait_in_between); }

// --- a pool of threads

enum { kWorkers = 3, kJobs = 12 };
static pthread_mutex_t queue_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_cv = PTHREAD_COND_INITIALIZER;
static int allowed;

// Each worker does every third job. So each worker does jobs of both kinds.
static void* work_off(void* number) {
  for (int job = (int)(intptr_t)number; job < kJobs; job += kWorkers) {
    pthread_mutex_lock(&queue_mu);
    while (job >= allowed) pthread_cond_wait(&queue_cv, &queue_mu);
    pthread_mutex_unlock(&queue_mu);
    if (job % 2 == 0) {
      forwards();
    } else {
      backwards();
    }
    baton_pass(turn_done);
  }
  return NULL;
}
static void pool(void) {
  pthread_t workers[kWorkers];
  turn_done = baton_make();
  for (int i = 0; i < kWorkers; ++i) {
    if (pthread_create(&workers[i], NULL, work_off, (void*)(intptr_t)i) != 0) abort();
  }
  for (int job = 0; job < kJobs; ++job) {
    pthread_mutex_lock(&queue_mu);
    ++allowed;
    pthread_cond_broadcast(&queue_cv);
    pthread_mutex_unlock(&queue_mu);
    baton_wait(turn_done);
  }
  for (int i = 0; i < kWorkers; ++i) end(workers[i]);
}

const struct scene inverted_scenes[] = {
    {"plain", plain},
    {"after_a_join", after_a_join},
    {"made_by_another", made_by_another},
    {"id_used_again", id_used_again},
    {"main_beside_thread", main_beside_thread},
    {"in_child_too", in_child_too},
    {"ring", ring},
    {"reader_and_writer", reader_and_writer},
    {"queued_writer", queued_writer},
    {"readers_gate", readers_gate},
    {"gate_left_early", gate_left_early},
    {"gate_entered_late", gate_entered_late},
    {"counting_semaphore", counting_semaphore},
    {"condition", condition},
    {"pool", pool},
    {NULL, NULL},
};
