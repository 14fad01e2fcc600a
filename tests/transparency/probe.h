/* The frame of the transparency probes. A probe calls hooked functions and says what it sees; the frame runs each probe
 * in all CONTEXTS (see contexts.c); transparency.py does that bare and under the shim and compares to the letter.
 *
 * To add probes: a file a group in probes/, found by the build. Lines of its head comment say what it needs:
 *
 *     ENV: NAME=a,b          run once with each value of a variable of the shim, beside what all groups run with
 *     FLAGS: -fopenmp        to the compiler, and LIBS: to the linker
 *
 * A probe is
 *
 *     PROBE(what_it_shows) { SHOW(hooked_function(argument)); }
 *
 * and must say the same in each bare run: no addresses, ids, times (say whether they are within a bound), and no order
 * that the scheduler decides. It runs before main, in signal handlers and on small stacks, too: no large arrays. What
 * is not possible bare in a context is left out there by PROBE_IN(name, ANYWHERE & ~IN_HANDLER).
 */
#ifndef FORKSIGHT_TESTS_PROBE_H
#define FORKSIGHT_TESTS_PROBE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

enum Context {
  IN_MAIN = 1,             /* a process that never had another thread */
  IN_MAIN_OF_MANY = 2,     /* the initial thread of a process with threads */
  IN_SMALL_THREAD = 4,     /* a thread with the smallest stack that there is */
  IN_HANDLER = 8,          /* a signal handler on an alternate stack */
  IN_CHILD = 16,           /* the child of a process with one thread */
  IN_WATCHED_CHILD = 32,   /* the child of a process whose other thread holds a lock that no probe uses */
  BEFORE_MAIN = 64,        /* before the constructors of all libraries */
  AT_EXIT = 128,           /* an atexit handler */
  IN_DESTRUCTOR = 256,     /* a destructor of the main program: after the atexit handlers */
  IN_KEY_DESTRUCTOR = 512, /* a destructor of thread-specific data, after the thread's function */
  IN_CLEANUP = 1024,       /* a cleanup handler of a cancelled thread */
  ANYWHERE = 2047
};

struct Probe {
  const char* name;
  void (*run)(void);
  unsigned contexts;
};

#define PROBE_IN(probe, where)                                                                               \
  static void probe(void);                                                                                   \
  static const struct Probe probe_##probe = {#probe, probe, where};                                          \
  static const struct Probe* const listed_##probe __attribute__((used, section("probes"))) = &probe_##probe; \
  static void probe(void)
#define PROBE(probe) PROBE_IN(probe, ANYWHERE)

/* One line, at most 255 bytes, by one write. Leaves errno alone. */
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

/* A value of errno that no call leaves behind by itself. */
enum { kSentinel = 4711 };

/* Result and errno of a call. */
#define SHOW(expression)                                     \
  do {                                                       \
    errno = kSentinel;                                       \
    const long result_ = (long)(expression);                 \
    const int errno_ = errno;                                \
    say("%s = %ld, errno %d", #expression, result_, errno_); \
  } while (0)

/* The same for a call with a deadline that is to come: also whether it took at least `ms`, and not for ever. */
#define SHOW_TIMED(expression, ms)                                                                            \
  do {                                                                                                        \
    const long begin_ = milliseconds();                                                                       \
    SHOW(expression);                                                                                         \
    const long took_ = milliseconds() - begin_;                                                               \
    say("  after %s", took_<(ms) ? "too short a time" : took_>(ms) + 20000 ? "too long a time" : "due time"); \
  } while (0)

long milliseconds(void); /* of CLOCK_MONOTONIC */
struct timespec long_ago(void);
struct timespec in_ms(clockid_t clock, long ms);

/* Waits until `thread` sleeps in the kernel, or has ended. Say it before a call that blocks, then nothing until the
 * call. */
void wait_until_asleep(pid_t thread);

/* A call that blocks until `release`. show_blocking() runs it in a thread of its own: released; interrupted by a signal
 * with and without SA_RESTART; cancelled while it sleeps; cancelled before it begins. `after` says in which state the
 * objects are then. prepare() is called before each. `call` and `release` use what is static to the group. */
struct Blocking {
  const char* name;
  void (*prepare)(void);
  int (*call)(void);
  void (*release)(void);
  void (*after)(void);
  void (*cleanup)(void); /* the thread's cleanup handler when it is cancelled; may be null */
};
void show_blocking(const struct Blocking* blocking);

/* Runs `body` in a thread of its own and joins it. */
void in_thread(void (*body)(void));
/* Runs `body` in a forked child, which then ends with _exit(0); says how it ended. */
void in_child(void (*body)(void));

#ifdef __cplusplus
}
#endif
#endif
