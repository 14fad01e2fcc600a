// Mechanism: exec fails in a child of vfork(), and the child calls exit(). The child runs in its parent's memory. So
//            the parent's exit handlers run before the parent ends. The parent goes on after that, and the handlers do
//            not run again at its end.
// To blame:  exit() instead of _exit() after vfork().
// User sees: a temporary file that is removed too early, output that appears twice or never, or a crash at the parent's
//            end.
// Fix:       call _exit(). Or use posix_spawn(), which returns the error.
// Repaired:  the child calls _exit().
//
// EXPECT-BARE: error
// EXPECT: vfork-misuse proven corruption culprit="child of vfork()"
// EXPECT-STACK: stack start@exit main@start
#include "../baton.h"

static int has_session = 1;

static void close_session(void) { has_session = 0; }

__attribute__((noinline)) static pid_t start(void) {
  const pid_t child = vfork();
  if (child == 0) {
    execl("/nowhere", "nowhere", (char*)NULL);
#ifdef REPAIRED
    _exit(127);
#else
    exit(127);  // MARK: exit
#endif
  }
  return child;
}

int main(void) {
  atexit(close_session);
  const pid_t child = start();  // MARK: start
  if (end_of(child) != 127) return 2;
  return has_session ? 0 : 1;
}
