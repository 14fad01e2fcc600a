// Reads from a pipe. Only this process has the writing end, and the process does not write. But the signal of an alarm
// ends the read, so the process does not hang.
#include <errno.h>
#include <signal.h>
#include <unistd.h>

static void on_alarm(int signal) {
  (void)signal;
}

int main(void) {
  const struct sigaction action = {.sa_handler = on_alarm};
  int ends[2];
  if (sigaction(SIGALRM, &action, NULL) != 0 || pipe(ends) != 0)
    return 2;
  alarm(3);
  char byte;
  return read(ends[0], &byte, 1) == -1 && errno == EINTR ? 0 : 1;
}
