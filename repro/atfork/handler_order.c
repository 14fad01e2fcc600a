// Mechanism: each of two libraries, ledger and journal, has a lock, and a prepare handler that takes this lock. A
//            worker takes the ledger's lock and then the journal's lock. fork() calls prepare handlers in the reverse
//            order of their registration. So the forking thread takes the journal's lock and then waits for the
//            ledger's lock.
// To blame:  the order in which the libraries were started. The prepare handlers run in the reverse of that order.
// User sees: now and then the parent stops in fork(), at 0 % CPU. There is no child yet.
// Fix:       register the handlers in the reverse of the order in which the locks are taken.
// Repaired:  the journal is started before the ledger.
//
// EXPECT-BARE: hang
// EXPECT: atfork-order proven hang culprit="prepare handler ledger_prepare (3rd of 3)" library=libledger.so
// EXPECT-STACK: culprit ledger_begin@order_library.c:begin
// EXPECT-STACK: stack ledger_prepare@order_library.c:prepare
// EXPECT-STACK: fork main@fork
// EXPECT-WHY: atfork-handler-stuck proven hang culprit="prepare handler ledger_prepare" holder=worker
// EXPECT-CORE: atfork-handler-stuck likely/proven may-hang culprit="prepare handler ledger_prepare" library=libledger.so
#include <pthread.h>

#include "../baton.h"

void ledger_start(void);
void ledger_begin(void);
void ledger_end(void);
void journal_start(void);
void journal_begin(void);
void journal_end(void);

static struct baton has_ledger, may_go_on;

static void let_worker_go_on(void) { baton_pass(may_go_on); }

static void* worker_main(void* unused) {
  pthread_setname_np(pthread_self(), "worker");
  ledger_begin();
  baton_pass(has_ledger);
  baton_wait(may_go_on);
  journal_begin();
  journal_end();
  ledger_end();
  return unused;
}

int main(void) {
  pthread_t worker;
  has_ledger = baton_make();
  may_go_on = baton_make();
#ifdef REPAIRED
  journal_start();
  ledger_start();
  pthread_atfork(let_worker_go_on, NULL, NULL);
#else
  ledger_start();
  pthread_atfork(let_worker_go_on, NULL, NULL);
  journal_start();
#endif
  pthread_create(&worker, NULL, worker_main, NULL);
  baton_wait(has_ledger);
  const pid_t child = fork();  // MARK: fork
  if (child == 0) _exit(0);
  pthread_join(worker, NULL);
  return end_of(child);
}
