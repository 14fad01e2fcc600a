/* A process with a second thread starts other programs by posix_spawn, system, popen and vfork. */
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static int leave_pipe[2];

static void* wait_to_leave(void* unused) {
  char byte;
  (void)unused;
  return read(leave_pipe[0], &byte, 1) == 1 ? leave_pipe : NULL;
}

static int end_of(pid_t pid) {
  int status = 0;
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void) {
  char* const shell[] = {"sh", "-c", "exit 4", NULL};
  pthread_t thread;
  pid_t pid = -1;
  char line[64] = "";
  if (pipe(leave_pipe) != 0 || pthread_create(&thread, NULL, wait_to_leave, NULL) != 0) return 1;
  printf("spawn %d", posix_spawnp(&pid, "sh", NULL, NULL, shell, environ));
  printf(", ended with %d\n", end_of(pid));
  fflush(stdout);
  printf("system %d\n", WEXITSTATUS(system("exit 7")));
  FILE* const stream = popen("echo from the shell", "r");
  if (stream == NULL || fgets(line, sizeof line, stream) == NULL) return 1;
  printf("popen %d: %s", WEXITSTATUS(pclose(stream)), line);
  fflush(stdout);
  pid = vfork();
  if (pid == 0) {
    execvp("sh", shell);
    _exit(127);
  }
  printf("vfork, ended with %d\n", end_of(pid));
  if (write(leave_pipe[1], "x", 1) != 1 || pthread_join(thread, NULL) != 0) return 1;
  return 8;
}
