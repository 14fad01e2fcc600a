// Mechanism: a reader waits for end of file on a pipe. But the process that waits for the reader has the writing end
//            open.
//            -DSELF:    the reader alone has the writing end open.
//            -DSIBLING: a process that was started later has inherited the writing end.
//            -DSLEEPER: a process that was started first has the writing end open. That process sleeps, and forksight
//                       cannot know whether it will ever write. So `run` reports nothing, and `why` calls the hang
//                       possible.
//            -DWORKER:  the process that was started first is the writer, and has not begun to write.
//            -DIDLE_POOL: the reader collects what two workers send. One worker has ended. The other one waits for a
//                         task, which the reader does not send. forksight reports a pipe-deadlock.
// To blame:  the processes that did not close their descriptors after fork().
// User sees: the reader has read all its input and does not end.
// Fix:       each process closes the ends that it does not use.
// Repaired:  the writing end is closed before the wait.
//
// EXPECT-BARE: hang
// EXPECT: pipe-held-open proven hang victims=0
// EXPECT-NONE(sleeper)
// EXPECT-WHY(sleeper): pipe-held-open possible may-hang victims=0
// EXPECT-NONE(worker)
// EXPECT(idle_pool): pipe-deadlock proven hang victims=0
#include <signal.h>
#include <sys/prctl.h>

#include "../baton.h"

static int drain(int fd) {
  char byte;
  while (read(fd, &byte, 1) > 0) {
  }
  return 0;
}

#if defined(SLEEPER) || defined(WORKER) || defined(IDLE_POOL)
// Forks a child that the kernel kills when its parent ends in any way.
static pid_t fork_worker(void) {
  const pid_t child = fork();
  if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  return child;
}
#endif

#if defined(SLEEPER) || defined(WORKER)
int main(void) {
  struct baton input = baton_make();
  const pid_t sleeper = fork_worker();
  if (sleeper == 0) {
    close(input.end[0]);
    for (;;) pause();
  }
#ifdef SLEEPER
  const pid_t writer = fork_worker();
  if (writer == 0) {
    baton_pass(input);
    _exit(0);
  }
  if (end_of(writer) != 0) return 1;
#endif
  close(input.end[1]);
  return drain(input.end[0]);
}
#elif defined(IDLE_POOL)
int main(void) {
  struct baton results = baton_make();
  struct baton tasks = baton_make();
  pid_t workers[2];
  for (int i = 0; i < 2; ++i) {
    workers[i] = fork_worker();
    if (workers[i] != 0) continue;
    close(tasks.end[1]);
    close(results.end[0]);
    baton_wait(tasks);
    baton_pass(results);
    _exit(0);
  }
  close(results.end[1]);
  baton_pass(tasks);
  baton_wait(results);
  if (wait(NULL) < 0) return 1;
  return drain(results.end[0]);
}
#elif defined(SELF)
int main(void) {
  struct baton input = baton_make();
  baton_pass(input);
  return drain(input.end[0]);
}
#elif defined(SIBLING)
int main(void) {
  struct baton input = baton_make();
  struct baton other = baton_make();
  const pid_t reader = fork();
  if (reader == 0) {
    close(input.end[1]);
    close(other.end[1]);
    _exit(drain(input.end[0]));
  }
  const pid_t sibling = fork();
  if (sibling == 0) {
    close(other.end[1]);  // input.end[1] stays open: the fault
    _exit(drain(other.end[0]));
  }
  close(input.end[1]);
  const int status = end_of(reader);
  close(other.end[1]);
  return status | end_of(sibling);
}
#else
int main(void) {
  struct baton input = baton_make();
  const pid_t reader = fork();
  if (reader == 0) {
    close(input.end[1]);
    _exit(drain(input.end[0]));
  }
  baton_pass(input);
#ifdef REPAIRED
  close(input.end[1]);
#endif
  return end_of(reader);
}
#endif
