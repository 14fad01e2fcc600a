// Mechanism: a thread holds the lock of stdout while main calls _Fork(), which runs no atfork handlers and resets no
//            lock of libc; the child prints. After fork() it would print: fork() resets the locks of streams.
// To blame:  _Fork(), in a process with threads, in a child that does more than exec.
// User sees: a child that hangs in printf().
// Fix:       fork(), or nothing but async-signal-safe calls in the child.
// Repaired:  fork(). raw, raw_clone: the system call itself, by syscall().
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
