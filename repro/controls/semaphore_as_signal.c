// Mechanism: none. A semaphore counts the items of a queue. The parent's consumer has taken all items. The child waits
//            for an item, and another thread of the child posts one later. The consumer was lost at the fork, but it
//            would never have posted the semaphore.
// To blame:  nobody.
// User sees: nothing, and must not see a warning. No cure may wake the child's consumer, or end the child, before the
//            item comes.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
// EXPECT-RUN: --on-orphan=recover outcome=none status=0
// EXPECT-RUN: --on-orphan=abort outcome=none status=0
// EXPECT-RUN: --cure=auto,orphans outcome=none status=0
#include <pthread.h>
#include <semaphore.h>

#include "../baton.h"

static sem_t items;
static int count;
static struct baton consumer_is_empty;

static void* consumer_of_parent(void* unused) {
  sem_wait(&items);
  __atomic_sub_fetch(&count, 1, __ATOMIC_SEQ_CST);
  baton_pass(consumer_is_empty);
  sem_wait(&items);
  return unused;
}

static void put_item(void) {
  __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
  sem_post(&items);
}

static void* producer_of_child(void* consumer_comes) {
  baton_wait(*(struct baton*)consumer_comes);
  while (items.__align == 0) sched_yield();  // the upper half of this word is glibc's count of waiting threads
  put_item();
  return NULL;
}

int main(void) {
  pthread_t consumer;
  consumer_is_empty = baton_make();
  sem_init(&items, 0, 0);
  pthread_create(&consumer, NULL, consumer_of_parent, NULL);
  put_item();
  baton_wait(consumer_is_empty);
  while (items.__align == 0) sched_yield();
  const pid_t child = fork();
  if (child == 0) {
    pthread_t producer;
    struct baton consumer_comes = baton_make();
    pthread_create(&producer, NULL, producer_of_child, &consumer_comes);
    baton_pass(consumer_comes);
    sem_wait(&items);
    const int found = __atomic_load_n(&count, __ATOMIC_SEQ_CST);
    pthread_join(producer, NULL);
    _exit(found == 1 ? 0 : 1);
  }
  const int status = end_of(child);
  put_item();
  pthread_join(consumer, NULL);
  return status;
}
