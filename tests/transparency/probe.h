/* What all transparency probes share. A probe calls hooked functions and prints what it sees. The program of a group
 * runs each of its probes in all CONTEXTS (see contexts.c). transparency.py runs the programs with and without the
 * shim. The output must be the same, byte for byte.
 *
 * Each file in probes/ is one group of probes. The build finds new files. Lines of the comment at the beginning of a
 * file say what the group needs:
 *
 *     ENV: NAME=a,b          also run with each of these values of a variable of the shim
 *     FLAGS: -fopenmp        flags for the compiler
 *     LIBS: name             libraries for the linker
 *
 * This is a probe:
 *
 *     PROBE(what_it_shows) { SHOW(hooked_function(argument)); }
 *
 * A probe must print the same in each run without the shim. So it prints no addresses, no ids, no times, and no order
 * that the scheduler decides. It may print whether a time is within a bound. It has no large arrays on the stack,
 * because it also runs in signal handlers and on small stacks. PROBE_IN(name, ANYWHERE & ~IN_HANDLER) leaves out a
 * context in which the probe is not possible even without the shim.
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
  IN_SMALL_THREAD = 4,     /* a thread with the smallest possible stack */
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

/* Prints one line of at most 255 bytes with one write(). Does not change errno. */
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

/* A value of errno that no call sets. */
enum { kSentinel = 4711 };

/* Prints the result of a call, and errno after it. */
#define SHOW(expression)                                     \
  do {                                                       \
    errno = kSentinel;                                       \
    const long result_ = (long)(expression);                 \
    const int errno_ = errno;                                \
    say("%s = %ld, errno %d", #expression, result_, errno_); \
  } while (0)

/* Does the same as SHOW for a call that waits until a deadline. Also prints whether the call took at least `ms`
 * milliseconds, and at most 20 seconds more. The time counts from the last in_ms() of this thread, because on a busy
 * machine the thread may lose the processor between in_ms() and the call. If the thread has not called in_ms() since
 * its last SHOW_TIMED, the time counts from now. */
#define SHOW_TIMED(expression, ms)                                                                            \
  do {                                                                                                        \
    const long begin_ = begin_of_wait();                                                                      \
    SHOW(expression);                                                                                         \
    const long took_ = milliseconds() - begin_;                                                               \
    say("  after %s", took_<(ms) ? "too short a time" : took_>(ms) + 20000 ? "too long a time" : "due time"); \
  } while (0)

long milliseconds(void); /* of CLOCK_MONOTONIC */
struct timespec long_ago(void);
struct timespec in_ms(clockid_t clock, long ms);
long begin_of_wait(void); /* from when SHOW_TIMED counts the time; in milliseconds of CLOCK_MONOTONIC */

/* Waits until `thread` sleeps in the kernel, or has ended. The caller assumes that `thread` then sleeps in its blocking
 * call. So before its blocking call `thread` must not sleep in any other call while this function may run. */
void wait_until_asleep(pid_t thread);

/* A call that blocks until `release` is called. show_blocking() makes the call five times, each time in a new thread.
 * Once `release` ends the call. Twice a signal interrupts the call, without and with SA_RESTART. Once the thread is
 * cancelled while it sleeps. Once the thread is cancelled before the call. `prepare` is called before each time.
 * `after` is called after each time, and prints the state of the objects. `call` and `release` use static variables of
 * the group. */
struct Blocking {
  const char* name;
  void (*prepare)(void);
  int (*call)(void);
  void (*release)(void);
  void (*after)(void);
  void (*cleanup)(void); /* called by the cleanup handler of a cancelled thread; may be null */
};
void show_blocking(const struct Blocking* blocking);

/* Runs `body` in a new thread and joins it. */
void in_thread(void (*body)(void));
/* Runs `body` in a forked child, which then ends with _exit(0). Prints how the child ended. */
void in_child(void (*body)(void));

#ifdef __cplusplus
}
#endif
#endif
