/* vfork(), used in ways that POSIX allows, and in ways that POSIX does not allow but that programs use. */
#include "probe.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int status_of(pid_t child) {
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

/* The child calls this to overwrite the stack below the frame that called vfork(). This must not change that frame. */
__attribute__((noinline)) static int deepen(int depth) {
  volatile char bytes[64];
  for (unsigned at = 0; at < sizeof bytes; ++at) bytes[at] = (char)depth;
  return depth == 0 ? bytes[0] : deepen(depth - 1) + bytes[1];
}

static void exit_in_child(void) {
  volatile int words[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  volatile int written = 0;
  errno = kSentinel;
  const pid_t child = vfork();
  if (child == 0) {
    written = deepen(4) != 0 && errno == kSentinel ? 7 : 8;
    _exit(3);
  }
  const int error = errno;
  int sum = 0;
  for (unsigned at = 0; at < 8; ++at) sum += words[at];
  say("vfork: errno %d, the child's word %d, sum %d, status %x", error, written, sum, (unsigned)status_of(child));
}
PROBE(child_exits) { exit_in_child(); }
PROBE(child_exits_in_thread) { in_thread(exit_in_child); }

PROBE(child_execs) {
  const pid_t child = vfork();
  if (child == 0) {
    execl("/bin/false", "false", (char*)NULL);
    _exit(127);
  }
  SHOW(status_of(child));
}

PROBE(child_has_another_pid) {
  volatile pid_t seen = 0;
  const pid_t parent = getpid();
  const pid_t child = vfork();
  if (child == 0) {
    seen = getpid();
    _exit(getppid() == parent ? 0 : 1);
  }
  SHOW(seen == child && child != parent);
  SHOW(status_of(child));
}

/* The child calls vfork(), too. */
PROBE(nested) {
  volatile int inner_status = 0;
  const pid_t child = vfork();
  if (child == 0) {
    const pid_t inner = vfork();
    if (inner == 0) _exit(5);
    inner_status = status_of(inner);
    _exit(4);
  }
  SHOW(status_of(child));
  SHOW(inner_status);
}

/* The child calls fork(). The grandchild is then an ordinary forked process. */
PROBE(fork_in_child) {
  volatile int inner_status = 0;
  const pid_t child = vfork();
  if (child == 0) {
    const pid_t inner = fork();
    if (inner == 0) _exit(6);
    inner_status = status_of(inner);
    _exit(0);
  }
  SHOW(status_of(child));
  SHOW(inner_status);
}

/* vfork() fails at the limit of processes (RLIMIT_NPROC). The limit does not apply to root. */
PROBE(refused) {
  struct rlimit before;
  if (getrlimit(RLIMIT_NPROC, &before) != 0) return;
  const struct rlimit none = {0, before.rlim_max};
  if (setrlimit(RLIMIT_NPROC, &none) != 0) return;
  errno = kSentinel;
  const pid_t child = vfork();
  if (child == 0) _exit(0);
  const int error = errno;
  setrlimit(RLIMIT_NPROC, &before);
  say("vfork: result below 0 %d, errno %d, status %x", child < 0, error, child < 0 ? 0U : (unsigned)status_of(child));
}
