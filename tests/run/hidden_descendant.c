// hidden_descendant FIFO MODE: a job whose process reads from a pipe. A process that has left the job, and that hides
// its descriptors, writes to the pipe when it has read from FIFO. It prints its pid first. MODE says what is unusual:
// leader-ends: the first thread of the hidden process has ended. job-leader-ends: the first thread of the reader has
// ended. clone-parent: the hidden process is a sibling of the reader.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char* fifo;
static int ends[2];

static void* let_go_on(void* unused) {
  char byte;
  (void)unused;
  const int opened = open(fifo, O_RDONLY);
  if (opened < 0 || read(opened, &byte, 1) != 1 || write(ends[1], "x", 1) != 1) _exit(1);
  _exit(0);
}

static void* read_pipe(void* unused) {
  char byte;
  (void)unused;
  _exit(read(ends[0], &byte, 1) == 1 ? 0 : 1);
}

// The first thread of the process ends, and another thread runs `work`.
static void leave_to_thread(void* (*work)(void*)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, NULL) != 0) _exit(1);
  syscall(SYS_exit, 0);
}

static void hide(int in_thread) {
  setsid();
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  printf("%d\n", (int)getpid());
  fflush(stdout);
  close(STDOUT_FILENO);
  if (in_thread) leave_to_thread(let_go_on);
  let_go_on(NULL);
}

int main(int argc, char** argv) {
  if (argc != 3 || pipe(ends) != 0) return 2;
  fifo = argv[1];
  if (strcmp(argv[2], "clone-parent") == 0) {
    if (syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) == 0) hide(0);
  } else if (fork() == 0) {
    if (fork() == 0) hide(strcmp(argv[2], "leader-ends") == 0);
    _exit(0);
  } else {
    wait(NULL);
  }
  if (strcmp(argv[2], "job-leader-ends") == 0) leave_to_thread(read_pipe);
  read_pipe(NULL);
}
