// Mechanism: a worker thread has locked a std::recursive_mutex twice while main forks. The child cannot lock the mutex.
// To blame:  the fork, in a process with a thread that holds locks. A recursive mutex does not prevent the hang.
// User sees: the child stops in log_line(), the function that every part of the program calls.
// Fix:       fork before the worker starts, or exec in the child, or re-initialise the mutex in a child handler.
// Repaired:  the worker has unlocked the mutex before the fork.
//
// EXPECT-BARE: hang
// EXPECT: orphaned-mutex proven hang lock=log_mutex holder=logger start=logger_main victims=1
// EXPECT-STACK: culprit write_report@outer logger_main@report
// EXPECT-STACK: stack log_line@touch main@child
// EXPECT-CURED: --on-orphan=recover stdout="child: went on"
// EXPECT-CURED: --cure=auto,orphans stdout="child: went on"
// EXPECT-RUN: --on-orphan=recover outcome=cured status=0 says="the data that the lock protects may be half-changed"
// EXPECT-RUN: --on-orphan=abort outcome=error status=134 says="fails instead of hanging"
// EXPECT-CORE: orphaned-mutex proven hang lock=log_mutex start=logger_main
#include <pthread.h>

#include <mutex>

#include "../baton.h"

std::recursive_mutex log_mutex;
int lines = 0;
baton logger_is_ready = baton_make();

[[gnu::noinline]] void write_header() {
  log_mutex.lock();
  ++lines;
#ifndef REPAIRED
  baton_pass(logger_is_ready);
  park();
#endif
  log_mutex.unlock();
}

[[gnu::noinline]] int write_report() {
  log_mutex.lock();  // MARK: outer
  write_header();
  log_mutex.unlock();
  return ++lines;
}

void* logger_main(void*) {
  pthread_setname_np(pthread_self(), "logger");
  write_report();  // MARK: report
  baton_pass(logger_is_ready);
  park();
  return nullptr;
}

[[gnu::noinline]] int log_line() {
  log_mutex.lock();  // MARK: touch
  const int line = ++lines;
  log_mutex.unlock();
  return line;
}

int main() {
  pthread_t logger;
  pthread_create(&logger, nullptr, logger_main, nullptr);
  baton_wait(logger_is_ready);
  const pid_t child = fork();
  if (child == 0) {
    const int line = log_line();  // MARK: child
    printf("child: went on\n");
    fflush(stdout);
    _exit(line > 0 ? 0 : 1);
  }
  return end_of(child);
}
