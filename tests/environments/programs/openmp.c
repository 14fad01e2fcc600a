/* Runs parallel regions, and forks. The child runs no parallel region. */
#include <omp.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  long sum = 0;
  int threads = 0, status = 0;
#pragma omp parallel for reduction(+ : sum) num_threads(3)
  for (int i = 0; i < 1000; ++i) sum += i;
#pragma omp parallel num_threads(2)
#pragma omp single
  threads = omp_get_num_threads();
  const pid_t pid = fork();
  if (pid == 0) _exit((int)(sum % 100));
  if (waitpid(pid, &status, 0) != pid) return 1;
  printf("sum %ld, %d threads, child %d\n", sum, threads, WEXITSTATUS(status));
  return 9;
}
