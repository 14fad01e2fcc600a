/* fork(), daemon() and forkpty(), and the handlers that pthread_atfork() registers. */
#include "probe.h"

#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void show_fork(void) {
  int status = -1;
  errno = kSentinel;
  const pid_t child = fork();
  const int error = errno;
  if (child == 0) {
    say("  child: errno %d, is initial thread %d, parent %d", error, getpid() == gettid(), getppid() != 1);
    _exit(3);
  }
  const pid_t waited = waitpid(child, &status, 0);
  say("  parent: errno %d, child %d, status %x", error, waited == child && child > 0, (unsigned)status);
}

PROBE(plain) {
  show_fork();
  in_thread(show_fork);
  for (int i = 0; i < 20; ++i) in_child(show_fork);
}

/* The daemon is not a child of this process, so it reports through a pipe. */
static void show_daemon(void) {
  int ends[2];
  int status = -1;
  char text[64] = "";
  if (pipe(ends) != 0) abort();
  const pid_t middle = fork();
  if (middle == 0) {
    const pid_t before = getpid();
    errno = kSentinel;
    const int result = daemon(1, 1);
    const int error = errno;
    text[0] = (char)('0' + result);
    text[1] = getpid() != before ? 'n' : 'o';
    text[2] = error == kSentinel || error == 0 ? 'k' : 'x';
    text[3] = getsid(0) == getpid() ? 's' : '-';
    if (write(ends[1], text, 4) != 4) abort();
    _exit(0);
  }
  close(ends[1]);
  waitpid(middle, &status, 0);
  const ssize_t got = read(ends[0], text, 4);
  close(ends[0]);
  say("  middle: status %x, daemon: %d %.4s", (unsigned)status, (int)got, text);
}
PROBE(leave_as_daemon) {
  show_daemon();
  in_child(show_daemon);
}

static void show_forkpty(void) {
  int terminal = -1;
  int status = -1;
  char text[16] = "";
  errno = kSentinel;
  const int child = forkpty(&terminal, NULL, NULL, NULL);
  if (child == 0) {
    if (write(1, "tty", 3) != 3) abort();
    _exit(isatty(0) ? 5 : 6);
  }
  const int error = errno;
  if (child < 0) {
    say("  forkpty: errno %d", error);
    return;
  }
  const ssize_t got = read(terminal, text, sizeof text - 1);
  const pid_t waited = waitpid(child, &status, 0);
  close(terminal);
  say("  forkpty: errno %d, child %d, %d bytes: %s, status %x", error, waited == child, (int)got, text,
      (unsigned)status);
}
PROBE(fork_on_terminal) {
  show_forkpty();
  in_child(show_forkpty);
}

static char g_order[64];
static atomic_int g_length;
static void note(char letter) { g_order[atomic_fetch_add(&g_length, 1) % 64] = letter; }
static void prepare_one(void) { note('a'); }
static void parent_one(void) { note('b'); }
static void child_one(void) { note('c'); }
static void prepare_two(void) { note('A'); }
static void parent_two(void) { note('B'); }
static void child_two(void) { note('C'); }
static void child_only(void) { note('x'); }

static void show_order(void) { say("  handlers %.*s", atomic_load(&g_length), g_order); }

/* atfork handlers cannot be removed, so they remain for the rest of the process. */
PROBE(handlers) {
  SHOW(pthread_atfork(prepare_one, parent_one, child_one));
  SHOW(pthread_atfork(prepare_two, parent_two, child_two));
  SHOW(pthread_atfork(NULL, NULL, child_only));
  SHOW(pthread_atfork(NULL, NULL, NULL));
  atomic_store(&g_length, 0);
  in_child(show_order);
  show_order();
  atomic_store(&g_length, 0);
  show_fork();
  show_order();
}

/* At the limit of processes (RLIMIT_NPROC) fork() fails with EAGAIN. The limit does not apply to root, so the child
 * changes its user. */
static void fork_at_the_limit(void) {
  const struct rlimit none = {0, 0};
  if (getuid() == 0 && setresuid(65534, 65534, 65534) != 0) say("  cannot change the user");
  setrlimit(RLIMIT_NPROC, &none);
  errno = kSentinel;
  const pid_t child = fork();
  const int error = errno;
  if (child == 0) _exit(0);
  if (child > 0) waitpid(child, NULL, 0);
  say("  fork failed %d, errno %d", child < 0, error);
}
PROBE(refused) { in_child(fork_at_the_limit); }

static void raise_and_end(void) { raise(SIGKILL); }
static void exec_true(void) {
  execl("/bin/true", "true", (char*)NULL);
  _exit(127);
}
PROBE(ways_to_end) {
  in_child(raise_and_end);
  in_child(exec_true);
}

/* The child starts its own threads, and forks. Its threads fork, too. */
static void live_on(void) {
  in_thread(show_fork);
  show_fork();
  in_thread(show_fork);
}
PROBE(generations) { in_child(live_on); }

/* Signals that arrive during a fork are handled, and do not make the fork fail. */
static atomic_int g_signals;
static atomic_int g_stop;
static void on_signal(int number) {
  (void)number;
  atomic_fetch_add(&g_signals, 1);
}
static pthread_t g_target;
static void* send_signals(void* unused) {
  while (!atomic_load(&g_stop)) {
    pthread_kill(g_target, SIGUSR1);
    sched_yield();
  }
  return unused;
}
PROBE(under_signals) {
  pthread_t sender;
  struct sigaction old;
  const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  int failed = 0;
  g_target = pthread_self();
  atomic_store(&g_stop, 0);
  atomic_store(&g_signals, 0);
  sigaction(SIGUSR1, &action, &old);
  pthread_create(&sender, NULL, send_signals, NULL);
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    int status = -1;
    failed += child < 0 || waitpid(child, &status, 0) != child || status != 0;
  }
  while (atomic_load(&g_signals) == 0) sched_yield();
  atomic_store(&g_stop, 1);
  pthread_join(sender, NULL);
  sigaction(SIGUSR1, &old, NULL);
  say("failed %d", failed);
}
