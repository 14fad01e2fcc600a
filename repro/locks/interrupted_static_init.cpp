// Mechanism: a worker thread initialises a function's static variable while main forks. The guard variable of the
//            static says "under way" in the child, too, but no thread of the child does the initialisation. A thread of
//            the child that needs the static waits for ever.
// To blame:  the fork, in a process with another thread that may use something for the first time.
// User sees: the child stops in a function that only reads a table, at 0 % CPU. Its stack has "__cxa_guard_acquire".
// Fix:       use the static once before threads are started, or declare it constinit, or exec in the child.
// Repaired:  the table has been used before the fork.
//
// EXPECT-BARE: hang
// EXPECT: interrupted-static-init proven hang lock="static table of shop::prices" start=loader_main victims=1
// EXPECT-STACK: culprit shop::prices@touch loader_main@load
// EXPECT-STACK: stack shop::prices@touch main@child
// EXPECT-CURED: --on-orphan=recover stdout="child: price 1"
// EXPECT-CORE: interrupted-static-init proven hang start=loader_main
#include <pthread.h>

#include "../baton.h"

baton loader_is_inside = baton_make();
thread_local bool is_loader = false;

struct Table {
  Table() {
#ifndef REPAIRED
    if (is_loader) {
      baton_pass(loader_is_inside);
      park();
    }
#endif
    price[0] = 1;
  }
  int price[4] = {};
};

namespace shop {

[[gnu::noinline]] int prices() {
  static Table table;  // MARK: touch
  return table.price[0];
}

}  // namespace shop

void* loader_main(void*) {
  pthread_setname_np(pthread_self(), "loader");
  is_loader = true;
  const int price = shop::prices();  // MARK: load
  if (price != 1) abort();
  baton_pass(loader_is_inside);
  park();
  return nullptr;
}

int main() {
  pthread_t loader;
  pthread_create(&loader, nullptr, loader_main, nullptr);
  baton_wait(loader_is_inside);
  const pid_t child = fork();
  if (child == 0) {
    const int price = shop::prices();  // MARK: child
    printf("child: price %d\n", price);
    fflush(stdout);
    _exit(price == 1 ? 0 : 1);
  }
  return end_of(child);
}
