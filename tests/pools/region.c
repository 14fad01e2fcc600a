// The parent runs an OpenMP region on four threads, and forks. The child runs no region. The test looks only at the
// threads at the fork.
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
