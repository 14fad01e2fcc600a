// Mechanism: a thread is inside of gettext(), which holds libc's locks of message catalogues while it opens a
//            catalogue. The child translates a message, too, and needs the same locks. fork() does not reset them.
// To blame:  the fork in a process with threads. A program that prints an error message often translates the message,
//            too.
// User sees: a child that hangs where it should report an error.
// Fix:       exec in the child. Or let the child write fixed texts by write(2).
// Repaired:  libc has looked for the catalogue before the fork.
//
// EXPECT-BARE: hang
// EXPECT: libc-lock-in-flight proven hang holder=talker start=talker_main victims=0
// EXPECT-WHY: libc-lock-in-flight proven/likely hang holder=talker start=talker_main victims=0
// EXPECT-STACK: culprit say@inside talker_main@call
// EXPECT-STACK: stack complain@touch main@child
// EXPECT-CORE: libc-lock-in-flight proven hang start=talker_main
#include <libintl.h>
#include <locale.h>

#include "slow.h"

static char catalogue[256];
static volatile int talker_tid;
static struct baton talker_goes_on;

static __attribute__((noinline)) int say(void) {
  const char* const text = dgettext("fscase", "hello");  // MARK: inside
  return text == NULL ? 0 : 1;
}

static void* talker_main(void* unused) {
  pthread_setname_np(pthread_self(), "talker");
  talker_tid = (int)syscall(SYS_gettid);
  baton_pass(talker_goes_on);
  if (say() == 0) abort();  // MARK: call
  baton_pass(talker_goes_on);
  park();
  return unused;
}

static __attribute__((noinline)) int complain(void) {
  const char* const text = dgettext("fscase", "it is broken");  // MARK: touch
  return text == NULL ? 1 : 0;
}

int main(void) {
  char folder[] = "/tmp/forksight-case-XXXXXX";
  char path[256];
  pthread_t thread;
  if (mkdtemp(folder) == NULL || setlocale(LC_ALL, "C.UTF-8") == NULL) abort();
  make_fifo(folder, "C.UTF-8/LC_MESSAGES/fscase.mo", catalogue);
  bindtextdomain("fscase", folder);
  talker_goes_on = baton_make();
  pthread_create(&thread, NULL, talker_main, NULL);
  baton_wait(talker_goes_on);
  await_open(talker_tid, catalogue);
#ifdef REPAIRED
  close(open(catalogue, O_WRONLY));  // the file is empty, so libc does not translate the text
  baton_wait(talker_goes_on);
#endif
  unlink(catalogue);
  snprintf(path, sizeof path, "%s/C.UTF-8/LC_MESSAGES", folder);
  rmdir(path);
  *strrchr(path, '/') = '\0';
  rmdir(path);
  rmdir(folder);
  const pid_t child = fork();
  if (child == 0) {
    const int status = complain();  // MARK: child
    _exit(status);
  }
  return end_of(child);
}
