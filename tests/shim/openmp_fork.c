// daemon() and forkpty() fork inside libc. The process has an OpenMP pool, and an allocator whose atfork handlers lock
// the allocator. In the child, a parallel region must have a full team, omp_get_max_threads() must return what the
// parent set, and the thread-local variables must have the values of the thread that forked. The same must be true if
// libgomp is linked statically. The program runs with the shim and a cure.
#include <omp.h>
#include <pthread.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static __thread int own = 42;

static int count_threads(void) {
  int threads = 0;
#pragma omp parallel
  {
#pragma omp atomic
    ++threads;
  }
  return threads;
}

// Returns 0, or the number of the check that failed.
static int look_in_child(void) {
  void* volatile memory = malloc(100);  // hangs if the atfork handlers of the allocator did not unlock it
  free(memory);
  if (own != 7) return 11;
  if (omp_get_max_threads() != 3) return 12;
  return count_threads() == 3 ? 0 : 13;
}

static int by_daemon(void) {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) abort();
  const pid_t middle = fork();
  if (middle == 0) {
    own = 7;
    omp_set_num_threads(3);
    if (count_threads() != 3) _exit(14);
    alarm(20);
    if (daemon(1, 1) != 0) _exit(15);
    alarm(20);
    _exit(look_in_child());
  }
  int result = 0;
  int status = 0;
  while (wait(&status) > 0) {
    if (status != 0) result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return result;
}

static int by_forkpty(void) {
  int terminal = -1;
  int status = -1;
  own = 7;
  omp_set_num_threads(3);
  if (count_threads() != 3) return 14;
  const int child = forkpty(&terminal, NULL, NULL, NULL);
  if (child == 0) {
    alarm(20);
    _exit(look_in_child());
  }
  if (child < 0 || waitpid(child, &status, 0) != child) return 15;
  if (count_threads() != 3) return 17;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char** argv) {
  const int result = argc == 2 && strcmp(argv[1], "daemon") == 0 ? by_daemon() : by_forkpty();
  printf("%d\n", result);
  return result;
}
