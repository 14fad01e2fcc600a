// Mechanism: a worker is killed in the middle of its task. Its parent reads the answer from a pipe. The parent itself
//            has the writing end open, so its read() gets no end of file when the worker ends.
//            -DTWO:     another worker has the writing end open, and waits for the next task.
// To blame:  the parent, which waits for an answer but does not watch for the end of the worker.
// User sees: the parent stops in read(). One worker is a zombie.
// Fix:       close the writing end in the parent. Watch for the worker's end, too, by poll() with a pidfd.
// Repaired:  the parent closes the writing end. Then only the worker has it open, and the parent gets an end of file.
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
