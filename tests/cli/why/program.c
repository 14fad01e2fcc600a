// program MODE: waits as MODE says, so that `forksight why` can examine the wait. The program writes a byte when it is
// ready.
//
// In these modes the program goes on when it reads a byte:
//   wait    waits in read()
//   private the same, but the process is not dumpable, so its own user may not examine it
//   hang    forks while a thread holds a mutex; when the child has read a byte, the child locks the mutex and hangs
//   chain   as hang, with one more process between the first process and the hanging process
// In these modes the program reads no byte, and something could still end the wait:
//   mutex      locks a mutex; the thread that holds it waits for a signal
//   semaphore  takes 2 from a System V semaphore to which a child added 1 before the child ended
//   messages   receives from a System V queue
//   queue      receives from a POSIX queue whose name it has removed
//   fifo PATH  makes a FIFO, and opens it for reading
//
// In this mode the program reads lines. Each line has a pid, and only the latest line counts:
//   late    runs until the first child of the process with this pid has slept for 20 ms. Then it writes a second byte,
//           and hangs: it reads from a pipe that no other process has open.
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
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

static void wait_for_mutex(void) {
  pthread_t holder;
  if (pipe(told) != 0 || pthread_create(&holder, NULL, hold, NULL) != 0) _exit(3);
  read_byte(told[0]);
  write_byte(STDOUT_FILENO);
  pthread_mutex_lock(&cache_mutex);
}

static void wait_for_semaphore(void) {
  const int set = semget(IPC_PRIVATE, 1, 0600);
  struct sembuf one = {0, 1, 0};
  struct sembuf two = {0, -2, 0};
  const pid_t child = fork();
  if (child == 0) _exit(semop(set, &one, 1) == 0 ? 0 : 3);
  if (waitpid(child, NULL, 0) != child) _exit(3);
  write_byte(STDOUT_FILENO);
  semop(set, &two, 1);
}

static void wait_for_message(void) {
  struct {
    long type;
    char text[8];
  } message;
  const int queue = msgget(IPC_PRIVATE, 0600);
  write_byte(STDOUT_FILENO);
  msgrcv(queue, &message, sizeof message.text, 0, 0);
}

static void wait_for_queue(void) {
  char name[64];
  char message[64];
  struct mq_attr size = {.mq_maxmsg = 1, .mq_msgsize = sizeof message};
  snprintf(name, sizeof name, "/forksight-why-%d", getpid());
  const mqd_t queue = mq_open(name, O_RDONLY | O_CREAT | O_EXCL, 0600, &size);
  if (queue < 0 || mq_unlink(name) != 0) _exit(3);
  write_byte(STDOUT_FILENO);
  mq_receive(queue, message, sizeof message, NULL);
}

static void wait_for_writer(const char* path) {
  if (mkfifo(path, 0600) != 0) _exit(3);
  write_byte(STDOUT_FILENO);
  open(path, O_RDONLY);
}

// Returns the first number in a file, or 0 if the file has none.
static int read_number(const char* path) {
  int number = 0;
  FILE* const file = fopen(path, "r");
  if (file == NULL) return 0;
  if (fscanf(file, "%d", &number) != 1) number = 0;
  fclose(file);
  return number;
}

static char state_of(int pid) {
  char path[64];
  char state = '?';
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  FILE* const file = fopen(path, "r");
  if (file == NULL) return state;
  if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = '?';
  fclose(file);
  return state;
}

static long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void hang_late(void) {
  char path[64] = "";
  char line[16] = "";
  int ends[2];
  size_t size = 0;
  long since_ms = now_ms();
  if (pipe(ends) != 0 || fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK) != 0) _exit(3);
  write_byte(STDOUT_FILENO);
  while (now_ms() - since_ms < 20) {
    const ssize_t got = read(STDIN_FILENO, line + size, sizeof line - 1 - size);
    if (got == 0 || (got < 0 && errno != EAGAIN)) _exit(3);
    if (got > 0) size += (size_t)got;
    if (size > 0 && line[size - 1] == '\n') {
      snprintf(path, sizeof path, "/proc/%d/task/%d/children", atoi(line), atoi(line));
      size = 0;
    }
    const int child = read_number(path);
    if (child == 0 || state_of(child) != 'S') since_ms = now_ms();
  }
  write_byte(STDOUT_FILENO);
  read_byte(ends[0]);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "mutex") == 0) wait_for_mutex();
  if (strcmp(mode, "semaphore") == 0) wait_for_semaphore();
  if (strcmp(mode, "messages") == 0) wait_for_message();
  if (strcmp(mode, "queue") == 0) wait_for_queue();
  if (strcmp(mode, "fifo") == 0 && argc > 2) wait_for_writer(argv[2]);
  if (strcmp(mode, "late") == 0) hang_late();
  if (strcmp(mode, "private") == 0 && prctl(PR_SET_DUMPABLE, 0) != 0) return 3;
  if (strcmp(mode, "wait") == 0 || strcmp(mode, "private") == 0) {
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
  fprintf(stderr, "program wait|hang|chain|mutex|semaphore|messages|queue|fifo PATH|late|private\n");
  return 2;
}
