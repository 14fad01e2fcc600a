// Mechanism: a worker thread holds queue_mutex while main forks. The child has the locked mutex, but not the worker.
// To blame:  the fork, in a process with a thread that holds locks. The line that hangs is correct.
// User sees: the child stops in its first use of the queue, at 0 % CPU. The parent waits for the child.
// Fix:       fork before the worker starts, or exec in the child, or hold queue_mutex across the fork (pthread_atfork).
// Repaired:  the worker has unlocked the mutex before the fork.
//
// EXPECT-BARE: hang
// EXPECT: orphaned-mutex proven hang lock=queue_mutex holder=worker start=worker_main victims=1
// EXPECT-STACK: culprit push_item@acquire fill_queue@call worker_main@fill
// EXPECT-STACK: stack pop_item@touch consume@consume main@child
// EXPECT-STACK: fork start_consumer@fork main@start
// EXPECT-CURED: --on-orphan=recover stdout="child: went on"
// EXPECT-CURED: --cure=auto,orphans stdout="child: went on"
// EXPECT-RUN: --on-orphan=recover outcome=cured status=0 says="the data that the lock protects may be half-changed"
// EXPECT-RUN: --on-orphan=abort outcome=error status=134 says="fails instead of hanging"
// EXPECT-CORE: orphaned-mutex proven hang lock=queue_mutex start=worker_main
#include <pthread.h>

#include <mutex>

#include "../baton.h"

std::mutex queue_mutex;
int queue_items = 0;
baton worker_holds = baton_make();

[[gnu::noinline]] void push_item() {
  const std::lock_guard guard(queue_mutex);  // MARK: acquire
  ++queue_items;
#ifndef REPAIRED
  baton_pass(worker_holds);
  park();
#endif
}

[[gnu::noinline]] int fill_queue() {
  push_item();  // MARK: call
  return ++queue_items;
}

void* worker_main(void*) {
  pthread_setname_np(pthread_self(), "worker");
  fill_queue();  // MARK: fill
  baton_pass(worker_holds);
  park();
  return nullptr;
}

[[gnu::noinline]] int pop_item() {
  const std::lock_guard guard(queue_mutex);  // MARK: touch
  return --queue_items;
}

[[gnu::noinline]] int consume() {
  const int left = pop_item();  // MARK: consume
  return left < 0 ? 1 : 0;
}

[[gnu::noinline]] pid_t start_consumer() {
  const pid_t child = fork();  // MARK: fork
  if (child < 0) abort();
  return child;
}

int main() {
  pthread_t worker;
  pthread_create(&worker, nullptr, worker_main, nullptr);
  baton_wait(worker_holds);
  const pid_t child = start_consumer();  // MARK: start
  if (child == 0) {
    const int failed = consume();  // MARK: child
    printf("child: went on\n");
    fflush(stdout);
    _exit(failed);
  }
  return end_of(child);
}
