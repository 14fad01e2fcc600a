// Mechanism: a thread is inside of getpwnam(), which holds a lock of its own while it asks the databases of
//            /etc/nsswitch.conf, for example a directory service. The child's getpwnam() takes the same lock. fork()
//            does not reset it.
// To blame:  the fork in a process with threads, and the look-up in the child. getpwnam_r() takes no such lock.
// User sees: now and then, when the directory service is slow, a worker of a server hangs before it drops its
//            privileges.
// Fix:       look up users before the fork, or by getpwnam_r().
// Repaired:  the database has answered before the fork.
//            group, host: the same with getgrnam() and gethostbyname(). Each of these functions has a lock of its own.
//
// EXPECT-BARE: hang
// EXPECT: libc-lock-in-flight proven hang lock=getpwnam:lock holder=lookup start=lookup_main victims=1
// EXPECT-WHY: libc-lock-in-flight proven/likely hang lock=getpwnam:lock holder=lookup start=lookup_main victims=1
// EXPECT-STACK: culprit find_user@inside lookup_main@call
// EXPECT-STACK: stack drop_privileges@touch main@child
// EXPECT-BARE(group-repaired): ok
// EXPECT-NONE(group-repaired)
// EXPECT-BARE(host-repaired): ok
// EXPECT-NONE(host-repaired)
// EXPECT(group): libc-lock-in-flight proven hang lock=getgrnam:lock holder=lookup start=lookup_main victims=1
// EXPECT-WHY(group): libc-lock-in-flight proven/likely hang lock=getgrnam:lock holder=lookup start=lookup_main victims=1
// EXPECT-STACK(group): culprit find_group@inside_group lookup_main@call
// EXPECT-STACK(group): stack drop_group@touch_group main@child
// EXPECT(host): libc-lock-in-flight proven hang holder=lookup start=lookup_main victims=1
// EXPECT-WHY(host): libc-lock-in-flight proven/likely hang holder=lookup start=lookup_main victims=1
// EXPECT-STACK(host): culprit find_host@inside_host lookup_main@call
// EXPECT-STACK(host): stack find_peer@touch_host main@child
// EXPECT-CORE: libc-lock-in-flight proven hang lock=getpwnam:lock start=lookup_main
// EXPECT-CORE(group): libc-lock-in-flight proven hang lock=getgrnam:lock start=lookup_main
// EXPECT-CORE(host): libc-lock-in-flight proven hang start=lookup_main
#include <grp.h>
#include <netdb.h>
#include <nss.h>
#include <pwd.h>

#include "slow.h"

// A function of glibc that sets which databases this process asks.
extern int __nss_configure_lookup(const char* database, const char* services);
// The case is linked with libnss_fsslow.so.2 (slow_database.c), which defines these batons.
extern struct baton fsslow_was_asked, fsslow_may_answer;

#if defined GROUP
#define DATABASE "group"
#define FIND find_group
#define TOUCH drop_group
#elif defined HOST
#define DATABASE "hosts"
#define FIND find_host
#define TOUCH find_peer
#else
#define DATABASE "passwd"
#define FIND find_user
#define TOUCH drop_privileges
#endif

static struct baton lookup_is_done;

static __attribute__((noinline, unused)) int find_user(void) {
  const struct passwd* const user = getpwnam("nobody-at-all");  // MARK: inside
  return user == NULL ? 1 : 0;
}

static __attribute__((noinline, unused)) int find_group(void) {
  const struct group* const group = getgrnam("nobody-at-all");  // MARK: inside_group
  return group == NULL ? 1 : 0;
}

static __attribute__((noinline, unused)) int find_host(void) {
  const struct hostent* const host = gethostbyname("no-such-host");  // MARK: inside_host
  return host == NULL ? 1 : 0;
}

static void* lookup_main(void* unused) {
  pthread_setname_np(pthread_self(), "lookup");
  if (FIND() == 0) abort();  // MARK: call
  baton_pass(lookup_is_done);
  park();
  return unused;
}

static __attribute__((noinline, unused)) int drop_privileges(void) {
  const struct passwd* const user = getpwnam("root");  // MARK: touch
  return user == NULL ? 0 : 2;
}

static __attribute__((noinline, unused)) int drop_group(void) {
  const struct group* const group = getgrnam("root");  // MARK: touch_group
  return group == NULL ? 0 : 2;
}

static __attribute__((noinline, unused)) int find_peer(void) {
  const struct hostent* const host = gethostbyname("another-host");  // MARK: touch_host
  return host == NULL ? 0 : 2;
}

int main(void) {
  pthread_t thread;
  fsslow_was_asked = baton_make();
  fsslow_may_answer = baton_make();
  lookup_is_done = baton_make();
  if (__nss_configure_lookup(DATABASE, "fsslow") != 0) abort();
  pthread_create(&thread, NULL, lookup_main, NULL);
  baton_wait(fsslow_was_asked);
#ifdef REPAIRED
  baton_pass(fsslow_may_answer);
  baton_wait(lookup_is_done);
  baton_pass(fsslow_may_answer);  // for the child's question
#endif
  const pid_t child = fork();
  if (child == 0) _exit(TOUCH());  // MARK: child
  return end_of(child);
}
