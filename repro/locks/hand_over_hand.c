// Mechanism: a thread walks a list hand over hand: it locks each node before it unlocks the previous node. After
//            many walks the thread stops at a node, with the node's lock held, and main forks. The child walks the same
//            list.
// To blame:  the fork, while a thread is on the list. The order in which the thread releases the locks is no fault.
// User sees: the child stops at the node where the other thread was, at 0 % CPU.
// Fix:       fork only while no thread is on the list: let an atfork handler take a lock of the whole list. Or exec in
//            the child.
// Repaired:  the thread has left the list before the fork.
//
// EXPECT-BARE: hang
// EXPECT: orphaned-mutex proven hang holder=walker start=walker_main victims=1
// EXPECT-STACK: culprit visit@take walk@step walker_main@walk
// EXPECT-STACK: stack visit@take walk@step main@child
#include <pthread.h>

#include "../baton.h"

enum { kNodes = 5, kRounds = 100 };

struct node {
  pthread_mutex_t lock;
  int visits;
};

static struct node nodes[kNodes];
static struct baton is_there, may_go;

__attribute__((noinline)) static struct node* visit(struct node* from, struct node* to) {
  pthread_mutex_lock(&to->lock);  // MARK: take
  if (from != NULL) pthread_mutex_unlock(&from->lock);
  ++to->visits;
  return to;
}

// Walks from the first node to `last`. The lock of `last` stays held.
__attribute__((noinline)) static int walk(struct node* last, int stays) {
  struct node* at = NULL;
  for (struct node* next = nodes; at != last; ++next) at = visit(at, next);  // MARK: step
  if (stays) {
    baton_pass(is_there);
    baton_wait(may_go);
  }
  return at->visits;
}

static void* walker_main(void* unused) {
  pthread_setname_np(pthread_self(), "walker");
  for (int i = 0; i < kRounds; ++i) {
    walk(&nodes[kNodes - 1], 0);
    pthread_mutex_unlock(&nodes[kNodes - 1].lock);
  }
#ifndef REPAIRED
  if (walk(&nodes[kNodes / 2], 1) <= kRounds) abort();  // MARK: walk
  pthread_mutex_unlock(&nodes[kNodes / 2].lock);
#else
  baton_pass(is_there);
  baton_wait(may_go);
#endif
  return unused;
}

int main(void) {
  pthread_t walker;
  is_there = baton_make();
  may_go = baton_make();
  for (int i = 0; i < kNodes; ++i) pthread_mutex_init(&nodes[i].lock, NULL);
  pthread_create(&walker, NULL, walker_main, NULL);
  baton_wait(is_there);
  const pid_t child = fork();
  if (child == 0) _exit(walk(&nodes[kNodes - 1], 0) > kRounds ? 0 : 1);  // MARK: child
  const int ended = end_of(child);
  baton_pass(may_go);
  pthread_join(walker, NULL);
  return ended;
}
