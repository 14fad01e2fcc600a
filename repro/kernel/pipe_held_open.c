// Mechanism: a reader waits for the end of a pipe whose writing end is open in the process that waits for the reader.
//            With -DSELF in the reader alone; with -DSIBLING in a process that was started later and inherited it.
// To blame:  the descriptors that were not closed after fork().
// User sees: the reader has had all its input and does not end.
// Fix:       each process closes the ends that it does not use.
// Repaired:  they are closed.
//
// EXPECT-BARE: hang
// EXPECT: pipe-held-open proven hang victims=0
#include "../baton.h"

static int drain(int fd) {
  char byte;
  while (read(fd, &byte, 1) > 0) {
  }
  return 0;
}

#if defined(SELF)
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
    close(other.end[1]);  // and forgets input.end[1]
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
