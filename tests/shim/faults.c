// faults_test.py runs this program. The program forks while another thread holds a mutex. The child waits 20 ms for the
// mutex. Then the program forks again, and the second child starts /bin/true. The program prints the results, and ends
// with status 5. A failed system call of the shim must not change the output or the status.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t held_mutex = PTHREAD_MUTEX_INITIALIZER;
static int ready[2];
static int over[2];
static char holder_task[64];  // the folder of the holding thread in /proc

static void* hold(void* unused) {
  char byte;
  snprintf(holder_task, sizeof holder_task, "/proc/self/task/%d", gettid());
  pthread_mutex_lock(&held_mutex);
  if (write(ready[1], "r", 1) != 1 || read(over[0], &byte, 1) != 1) _exit(9);
  pthread_mutex_unlock(&held_mutex);
  return unused;
}

static void child(void) {
  struct timespec when;
  clock_gettime(CLOCK_REALTIME, &when);
  when.tv_nsec += 20000000;
  if (when.tv_nsec >= 1000000000) {
    when.tv_nsec -= 1000000000;
    ++when.tv_sec;
  }
  const int result = pthread_mutex_timedlock(&held_mutex, &when);
  printf("child: %s\n", result == ETIMEDOUT ? "the mutex is held" : "wrong");
  exit(3);
}

int main(void) {
  char byte;
  pthread_t thread;
  int status = 0;
  if (pipe(ready) != 0 || pipe(over) != 0 || pthread_create(&thread, NULL, hold, NULL) != 0) return 9;
  if (read(ready[0], &byte, 1) != 1) return 9;
  fflush(stdout);
  errno = EDOM;
  const pid_t first = fork();
  const int kept = errno;
  if (first == 0) child();
  printf("parent: errno %s\n", kept == EDOM ? "kept" : "lost");
  if (first < 0 || waitpid(first, &status, 0) != first) return 9;
  printf("parent: the child ended with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  if (write(over[1], "o", 1) != 1 || pthread_join(thread, NULL) != 0) return 9;
  // pthread_join() returns a moment before the kernel removes the thread. Until then the shim counts this thread.
  while (access(holder_task, F_OK) == 0) sched_yield();
  fflush(stdout);
  const pid_t second = fork();
  if (second == 0) {
    execl("/bin/true", "true", NULL);
    _exit(8);
  }
  if (second < 0 || waitpid(second, &status, 0) != second) return 9;
  printf("parent: the program ended with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  return 5;
}
