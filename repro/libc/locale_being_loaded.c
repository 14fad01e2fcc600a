// Mechanism: a thread is inside of newlocale(), which holds libc's lock of locales while it opens the locale's files.
//            The child's setlocale() takes the same lock. fork() does not reset it.
// To blame:  the fork in a process with threads. Every runtime that converts numbers or sorts text makes locales.
// User sees: a child that hangs in setlocale() or newlocale(), or in the first text that it prints by gettext().
// Fix:       make locales before the fork, or exec in the child.
// Repaired:  newlocale() has returned before the fork.
//
// EXPECT-BARE: hang
// EXPECT: libc-lock-in-flight proven hang lock=__libc_setlocale_lock holder=parser start=parser_main victims=0
// EXPECT-WHY: libc-lock-in-flight proven/likely hang lock=__libc_setlocale_lock holder=parser start=parser_main victims=0
// EXPECT-STACK: culprit make_locale@inside parser_main@call
// EXPECT-STACK: stack set_up@touch main@child
// EXPECT-CORE: libc-lock-in-flight proven hang lock=__libc_setlocale_lock start=parser_main
#include <locale.h>

#include "slow.h"

static char numbers[256];
static volatile int parser_tid;
static struct baton parser_goes_on;

static __attribute__((noinline)) int make_locale(void) {
  const locale_t made = newlocale(LC_NUMERIC_MASK, "xx_XX", (locale_t)0);  // MARK: inside
  return made == (locale_t)0 ? 1 : 2;
}

static void* parser_main(void* unused) {
  pthread_setname_np(pthread_self(), "parser");
  parser_tid = (int)syscall(SYS_gettid);
  baton_pass(parser_goes_on);
  if (make_locale() == 0) abort();  // MARK: call
  baton_pass(parser_goes_on);
  park();
  return unused;
}

static __attribute__((noinline)) int set_up(void) {
  const char* const name = setlocale(LC_ALL, "C.UTF-8");  // MARK: touch
  return name == NULL ? 1 : 0;
}

int main(void) {
  char folder[] = "/tmp/forksight-case-XXXXXX";
  char parent[256];
  pthread_t thread;
  if (mkdtemp(folder) == NULL) abort();
  make_fifo(folder, "xx_XX/LC_NUMERIC", numbers);
  setenv("LOCPATH", folder, 1);
  parser_goes_on = baton_make();
  pthread_create(&thread, NULL, parser_main, NULL);
  baton_wait(parser_goes_on);
  await_open(parser_tid, numbers);
#ifdef REPAIRED
  close(open(numbers, O_WRONLY));  // an empty file is no locale: newlocale() fails and returns
  baton_wait(parser_goes_on);
#endif
  unlink(numbers);
  snprintf(parent, sizeof parent, "%s/xx_XX", folder);
  rmdir(parent);
  rmdir(folder);
  const pid_t child = fork();
  if (child == 0) {
    const int status = set_up();  // MARK: child
    _exit(status);
  }
  return end_of(child);
}
