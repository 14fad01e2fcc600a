// A team of four in the parent, a fork, and no region in the child: what the threads are at the fork is all that
// counts.
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  int threads = 0;
#pragma omp parallel num_threads(4) reduction(+ : threads)
  ++threads;
  const pid_t child = fork();
  if (child == 0) _exit(threads == 4 ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
