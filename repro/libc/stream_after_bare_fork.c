// Mechanism: a thread holds the lock of stdout while main calls _Fork(), which runs no atfork handlers and resets no
//            lock of libc. The child prints to stdout, and waits for the lock. After fork() the child could print,
//            because fork() resets the locks of streams.
//            raw, raw_clone: main makes the system call itself, by syscall().
// To blame:  _Fork() in a process with threads, and a child that does more than exec.
// User sees: a child that hangs in printf().
// Fix:       use fork(). Or call only async-signal-safe functions in the child.
// Repaired:  main calls fork().
//
// EXPECT-BARE: hang
// EXPECT: atfork-bypassed proven hang holder=printer start=printer_main victims=1
// EXPECT-STACK: fork main@fork
// EXPECT(raw): atfork-bypassed proven hang holder=printer start=printer_main victims=1
// EXPECT-STACK(raw): fork main@raw
// EXPECT(raw_clone): atfork-bypassed proven hang holder=printer start=printer_main victims=1
// EXPECT-STACK(raw_clone): fork main@raw_clone
// EXPECT-CORE: atfork-bypassed proven hang start=printer_main
// EXPECT-CORE(raw): none
// EXPECT-CORE(raw_clone): none
#include <pthread.h>
#include <signal.h>

#include "../baton.h"

static struct baton stream_is_locked;

static void* printer_main(void* unused) {
  pthread_setname_np(pthread_self(), "printer");
  flockfile(stdout);
  baton_pass(stream_is_locked);
  park();
  return unused;
}

int main(void) {
  pthread_t printer;
  stream_is_locked = baton_make();
  pthread_create(&printer, NULL, printer_main, NULL);
  baton_wait(stream_is_locked);
#ifdef REPAIRED
  const pid_t child = fork();
#elif defined RAW
  const pid_t child = (pid_t)syscall(SYS_fork);  // MARK: raw
#elif defined RAW_CLONE
  const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);  // MARK: raw_clone
#else
  const pid_t child = _Fork();  // MARK: fork
#endif
  if (child == 0) {
    puts("the child prints");
    fflush(stdout);
    _exit(0);
  }
  return end_of(child);
}
