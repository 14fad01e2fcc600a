// Mechanism: atfork handlers hold a std::recursive_mutex across the fork. In the child the unlock is refused, and
//            std::recursive_mutex hides that error. The next lock waits for an owner that has the parent's thread id.
// To blame:  a child handler that unlocks a mutex which checks its owner.
// User sees: the child hangs in a lock that its own handler seems to have released.
// Fix:       re-initialise the mutex in the child handler, or use a normal mutex.
// Repaired:  the child handler re-initialises the mutex.
//
// EXPECT-BARE: hang
// EXPECT: self-held-lock proven hang lock=cache_mutex victims=1
// EXPECT-STACK: culprit prepare@acquire
// EXPECT-STACK: stack look_up@touch main@child
// EXPECT-CURED: --cure=self-held stdout="child: 1 entries"
// EXPECT-CURED: --cure=auto stdout="child: 1 entries"
// EXPECT-CURED: --on-orphan=recover stdout="child: 1 entries"
// EXPECT-CURED(repaired): --cure=self-held stdout="child: 1 entries"
// EXPECT-CORE: self-held-lock proven hang lock=cache_mutex
#include <pthread.h>

#include <mutex>
#include <new>

#include "../baton.h"

std::recursive_mutex cache_mutex;
int cache_entries = 1;
baton helper_runs = baton_make();

void prepare() { cache_mutex.lock(); __asm__ volatile(""); }  // MARK: acquire
void in_parent() { cache_mutex.unlock(); }
void in_child() {
#ifdef REPAIRED
  new (&cache_mutex) std::recursive_mutex;
#else
  cache_mutex.unlock();
#endif
}

void* helper_main(void*) {
  baton_pass(helper_runs);
  park();
  return nullptr;
}

[[gnu::noinline]] int look_up() {
  const std::lock_guard guard(cache_mutex);  // MARK: touch
  return cache_entries;
}

int main() {
  pthread_atfork(prepare, in_parent, in_child);
  pthread_t helper;
  pthread_create(&helper, nullptr, helper_main, nullptr);
  baton_wait(helper_runs);
  const pid_t child = fork();
  if (child == 0) {
    const int entries = look_up();  // MARK: child
    printf("child: %d entries\n", entries);
    fflush(stdout);
    _exit(entries == 1 ? 0 : 1);
  }
  return end_of(child);
}
