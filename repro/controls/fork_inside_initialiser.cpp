// Mechanism: none. The constructor of a function's static variable forks, in a process with another thread. Parent and
//            child are both in the middle of the initialisation. The child's only thread is a copy of the thread that
//            initialises the variable. So the child finishes its initialisation.
// To blame:  nobody.
// User sees: nothing, and must not see a warning.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
#include <pthread.h>

#include "../baton.h"

baton idler_runs = baton_make();

struct Forks {
  Forks() : child(fork()) {}
  pid_t child;
};

Forks& forked() {
  static Forks value;
  return value;
}

void* idler_main(void*) {
  baton_pass(idler_runs);
  park();
  return nullptr;
}

int main() {
  pthread_t idler;
  pthread_create(&idler, nullptr, idler_main, nullptr);
  baton_wait(idler_runs);
  const pid_t child = forked().child;
  if (child == 0) _exit(forked().child == 0 ? 0 : 1);
  return end_of(child);
}
