// Mechanism: a worker is killed in the middle of its task. Its parent waits for the answer by a pipe, whose writing end it
//            has open itself, so the end of the worker is no end of file. With -DTWO another worker has it open, and waits
//            for the next task.
// To blame:  the parent, which waits for an answer and not for the end of the worker.
// User sees: the parent stops in read(); one worker is a zombie.
// Fix:       close the writing end in the parent; wait for the worker's end, too (poll() with a pidfd).
// Repaired:  each answer has a pipe of its own, whose writing end the worker alone has.
//
// EXPECT-BARE: hang
// EXPECT: pipe-held-open proven hang victims=0
// EXPECT(two): pipe-deadlock proven hang victims=0
#include <signal.h>

#include "../baton.h"

static struct baton tasks;
static struct baton answers;

static pid_t start_worker(int is_killed) {
  const pid_t worker = fork();
  if (worker != 0) return worker;
  close(tasks.end[1]);
  close(answers.end[0]);
  for (;;) {
    char task;
    if (read(tasks.end[0], &task, 1) != 1) _exit(0);
    if (is_killed) raise(SIGKILL);
    baton_pass(answers);
  }
}

int main(void) {
  tasks = baton_make();
  answers = baton_make();
  const pid_t killed = start_worker(1);
  baton_pass(tasks);
  siginfo_t how;
  waitid(P_PID, (id_t)killed, &how, WEXITED | WNOWAIT);
#ifdef TWO
  start_worker(0);
#endif
#if defined(TWO) || defined(REPAIRED)
  close(answers.end[1]);
#endif
  char answer;
  return read(answers.end[0], &answer, 1) == 0 ? 0 : 1;
}
