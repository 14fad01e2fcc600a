// program MODE: stays as it is told to, for `forksight why` to look at. It writes a byte when it is there, and hangs in
// the way of the mode once it can read one.
//
//   wait    is in read()
//   hang    forks while a thread holds a mutex; after a byte the child locks it
//   chain   the same, with one process more between the first and the one that hangs
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t cache_mutex = PTHREAD_MUTEX_INITIALIZER;
static int told[2];

static void read_byte(int fd) {
  char byte;
  if (read(fd, &byte, 1) < 0) _exit(3);
}

static void write_byte(int fd) {
  if (write(fd, "x", 1) != 1) _exit(3);
}

static void* hold(void* nothing) {
  pthread_mutex_lock(&cache_mutex);
  write_byte(told[1]);
  for (;;) pause();
  return nothing;
}

static void hang_in_child(void) {
  pthread_t holder;
  if (pipe(told) != 0 || pthread_create(&holder, NULL, hold, NULL) != 0) _exit(3);
  read_byte(told[0]);
  const pid_t child = fork();
  if (child == 0) {
    write_byte(STDOUT_FILENO);
    read_byte(STDIN_FILENO);
    pthread_mutex_lock(&cache_mutex);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "wait") == 0) {
    write_byte(STDOUT_FILENO);
    read_byte(STDIN_FILENO);
    return 0;
  }
  if (strcmp(mode, "hang") == 0) {
    hang_in_child();
    return 0;
  }
  if (strcmp(mode, "chain") == 0) {
    const pid_t middle = fork();
    if (middle == 0) {
      hang_in_child();
      _exit(0);
    }
    waitpid(middle, NULL, 0);
    return 0;
  }
  fprintf(stderr, "program wait|hang|chain\n");
  return 2;
}
