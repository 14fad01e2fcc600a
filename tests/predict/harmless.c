// In these scenes the lock orders form a ring, but cannot lead to a deadlock. forksight must report nothing about them.
#include <errno.h>

#include "orders.h"

static pthread_mutex_t from_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t to_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t gate_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table_rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t index_rw = PTHREAD_RWLOCK_INITIALIZER;
static sem_t gate_sem;

static void forwards(void) { take_both(&from_mu, &to_mu); }
static void backwards(void) { take_both(&to_mu, &from_mu); }

static void* go(void* unused) {
  forwards();
  return unused;
}
static void* come(void* unused) {
  backwards();
  return unused;
}
static void* go_in_turn(void* unused) {
  forwards();
  end_turn();
  return unused;
}

// --- a gate or a semaphore keeps the two threads apart: only one of them takes its locks at a time

static void* go_gated(void* unused) {
  pthread_mutex_lock(&gate_mu);
  forwards();
  pthread_mutex_unlock(&gate_mu);
  end_turn();
  return unused;
}
static void* come_gated(void* unused) {
  pthread_mutex_lock(&gate_mu);
  backwards();
  pthread_mutex_unlock(&gate_mu);
  end_turn();
  return unused;
}
static void gate(void) { TAKE_TURNS(go_gated, come_gated); }

static void gate_of_processes(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&gate_mu, &attributes);
  TAKE_TURNS(go_gated, come_gated);
}

static void* go_by_semaphore(void* unused) {
  sem_wait(&gate_sem);
  forwards();
  sem_post(&gate_sem);
  end_turn();
  return unused;
}
static void* come_by_semaphore(void* unused) {
  sem_wait(&gate_sem);
  backwards();
  sem_post(&gate_sem);
  end_turn();
  return unused;
}
static void semaphore(void) {
  sem_init(&gate_sem, 0, 1);
  TAKE_TURNS(go_by_semaphore, come_by_semaphore);
}

static void* go_as_reader(void* unused) {
  pthread_rwlock_rdlock(&table_rw);
  forwards();
  pthread_rwlock_unlock(&table_rw);
  end_turn();
  return unused;
}
static void* come_as_writer(void* unused) {
  pthread_rwlock_wrlock(&table_rw);
  backwards();
  pthread_rwlock_unlock(&table_rw);
  end_turn();
  return unused;
}
static void writer_gate(void) { TAKE_TURNS(go_as_reader, come_as_writer); }

// The main thread takes the gate before another thread exists.
static void* come_late(void* unused) {
  baton_wait(idle_done);
  pthread_mutex_lock(&gate_mu);
  backwards();
  pthread_mutex_unlock(&gate_mu);
  return unused;
}
static void early_gate(void) {
  idle_done = baton_make();
  pthread_mutex_lock(&gate_mu);
  const pthread_t thread = begin(come_late);
  forwards();
  pthread_mutex_unlock(&gate_mu);
  baton_pass(idle_done);
  end(thread);
}

// --- one thread has ended before the other begins, and forksight can see this order

static void joined(void) {
  const pthread_t other = begin_idle();
  for (int i = 0; i < 200; ++i) run(i % 2 == 0 ? go : come);
  end_idle(other);
}

// The thread `second` lives until after the join of the thread `first`. A later thread may get the id of `first`.
static struct baton second_done;
static void* wait_for_second(void* unused) {
  baton_wait(second_done);
  return unused;
}
static void joined_later(void) {
  second_done = baton_make();
  const pthread_t other = begin_idle();
  for (int i = 0; i < 50; ++i) {
    const pthread_t first = begin(go);
    const pthread_t second = begin(wait_for_second);
    end(first);
    run(come);
    baton_pass(second_done);
    end(second);
  }
  end_idle(other);
}

static void* run_go(void* unused) {
  run(go);
  return unused;
}
static void* run_come(void* unused) {
  run(come);
  return unused;
}
static void joined_by_another(void) {
  const pthread_t other = begin_idle();
  run(run_go);
  run(run_come);
  forwards();
  end_idle(other);
}

static void joined_by_trying(void) {
  const pthread_t other = begin_idle();
  for (int i = 0; i < 20; ++i) {
    const pthread_t thread = begin(i % 2 == 0 ? go : come);
    while (pthread_tryjoin_np(thread, NULL) == EBUSY) sched_yield();
  }
  end_idle(other);
}

static void before_and_after(void) {
  const pthread_t other = begin_idle();
  for (int i = 0; i < 3; ++i) {
    forwards();
    run(come);
  }
  forwards();
  end_idle(other);
}

// A thread of the child is not the same thread as a thread of the parent, even if both have the same id.
static void in_child(void) {
  const pthread_t other = begin_idle();
  run(go);
  const pid_t child = fork();
  if (child == 0) {
    const pthread_t childs_other = begin_idle();
    for (int i = 0; i < 20; ++i) run(i % 2 == 0 ? come : go);
    end_idle(childs_other);
    _exit(0);
  }
  if (end_of(child) != 0) abort();
  end_idle(other);
}

// --- no thread can wait for a lock

static void* go_to_read(void* unused) {
  pthread_rwlock_rdlock(&table_rw);
  pthread_mutex_lock(&to_mu);
  pthread_mutex_unlock(&to_mu);
  pthread_rwlock_unlock(&table_rw);
  end_turn();
  return unused;
}
static void* come_to_read(void* unused) {
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
static void readers(void) { TAKE_TURNS(go_to_read, come_to_read, write_alone); }

// The readers would wait behind a waiting writer, but no thread writes.
static void* read_both(void* unused) {
  pthread_rwlock_rdlock(&table_rw);
  pthread_rwlock_rdlock(&index_rw);
  pthread_rwlock_unlock(&index_rw);
  pthread_rwlock_unlock(&table_rw);
  end_turn();
  return unused;
}
static void* read_both_backwards(void* unused) {
  pthread_rwlock_rdlock(&index_rw);
  pthread_rwlock_rdlock(&table_rw);
  pthread_rwlock_unlock(&table_rw);
  pthread_rwlock_unlock(&index_rw);
  end_turn();
  return unused;
}
static void no_writer(void) {
  prefer_writers(&table_rw);
  prefer_writers(&index_rw);
  TAKE_TURNS(read_both, read_both_backwards);
}

static void* come_by_trying(void* unused) {
  for (;;) {
    pthread_mutex_lock(&to_mu);
    if (pthread_mutex_trylock(&from_mu) == 0) break;
    pthread_mutex_unlock(&to_mu);
  }
  pthread_mutex_unlock(&from_mu);
  pthread_mutex_unlock(&to_mu);
  end_turn();
  return unused;
}
static void tried(void) { TAKE_TURNS(go_in_turn, come_by_trying); }

static void* come_for_a_while(void* unused) {
  struct timespec past = {0, 0};
  pthread_mutex_lock(&to_mu);
  if (pthread_mutex_timedlock(&from_mu, &past) != 0) abort();
  pthread_mutex_unlock(&from_mu);
  pthread_mutex_unlock(&to_mu);
  end_turn();
  return unused;
}
static void timed(void) { TAKE_TURNS(go_in_turn, come_for_a_while); }

static void* go_and_come(void* unused) {
  forwards();
  backwards();
  end_turn();
  return unused;
}
static void* do_nothing(void* unused) {
  end_turn();
  return unused;
}
static void one_thread(void) { TAKE_TURNS(go_and_come, do_nothing); }

const struct scene harmless_scenes[] = {
    {"gate", gate},
    {"gate_of_processes", gate_of_processes},
    {"semaphore", semaphore},
    {"writer_gate", writer_gate},
    {"early_gate", early_gate},
    {"joined", joined},
    {"joined_later", joined_later},
    {"joined_by_another", joined_by_another},
    {"joined_by_trying", joined_by_trying},
    {"before_and_after", before_and_after},
    {"in_child", in_child},
    {"readers", readers},
    {"no_writer", no_writer},
    {"tried", tried},
    {"timed", timed},
    {"one_thread", one_thread},
    {NULL, NULL},
};
