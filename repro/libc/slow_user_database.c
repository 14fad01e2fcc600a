// Mechanism: a thread is inside of getpwnam(), which holds a lock of its own while the databases of /etc/nsswitch.conf are
//            asked (a directory service, say); the child's getpwnam() takes the same lock. fork() does not reset it.
// To blame:  the fork, in a process with threads, and the look-up in the child: getpwnam_r() takes no such lock.
// User sees: a server whose worker never drops its privileges, now and then, when the directory is slow.
// Fix:       look users up before the fork, or with getpwnam_r().
// Repaired:  the answer has come before the fork.
//
// EXPECT-BARE: hang
// EXPECT: libc-lock-in-flight certain hang lock=getpwnam:lock holder=lookup start=lookup_main victims=1
// EXPECT-STACK: culprit find_user@inside lookup_main@call
// EXPECT-STACK: stack drop_privileges@touch main@child
#include <nss.h>
#include <pwd.h>

#include "slow.h"

// Of glibc: which databases to ask, for this process.
extern int __nss_configure_lookup(const char* database, const char* services);
// Of libnss_fsslow.so.2 (slow_database.c), which the case is linked with.
extern struct baton fsslow_was_asked, fsslow_may_answer;

static struct baton lookup_is_done;

static __attribute__((noinline)) int find_user(void) {
  const struct passwd* const user = getpwnam("nobody-at-all");  // MARK: inside
  return user == NULL ? 1 : 0;
}

static void* lookup_main(void* unused) {
  pthread_setname_np(pthread_self(), "lookup");
  if (find_user() == 0) abort();  // MARK: call
  baton_pass(lookup_is_done);
  park();
  return unused;
}

static __attribute__((noinline)) int drop_privileges(void) {
  const struct passwd* const user = getpwnam("root");  // MARK: touch
  return user == NULL ? 0 : 2;
}

int main(void) {
  pthread_t thread;
  fsslow_was_asked = baton_make();
  fsslow_may_answer = baton_make();
  lookup_is_done = baton_make();
  if (__nss_configure_lookup("passwd", "fsslow") != 0) abort();
  pthread_create(&thread, NULL, lookup_main, NULL);
  baton_wait(fsslow_was_asked);
#ifdef REPAIRED
  baton_pass(fsslow_may_answer);
  baton_wait(lookup_is_done);
  baton_pass(fsslow_may_answer);  // for the child's
#endif
  const pid_t child = fork();
  if (child == 0) _exit(drop_privileges());  // MARK: child
  return end_of(child);
}
