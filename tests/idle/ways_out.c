/* ways_out MODE: programs whose threads all sleep, and that something can still wake; and their twins, which nothing
 * can. Each writes one byte to standard output before it waits. The healthy ones end with 7 once they are woken. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kWell = 7, kBroken = 99 };

static int ends[2];
static sem_t told;

static void say_ready(void) {
  if (write(STDOUT_FILENO, "x", 1) != 1) _exit(kBroken);
}

static void handle(int signal, void (*handler)(int)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  if (sigaction(signal, &action, NULL) != 0) _exit(kBroken);
}

static void write_to_pipe(int signal) {
  (void)signal;
  if (write(ends[1], "x", 1) != 1) _exit(kBroken);
}

static void post(int signal) {
  (void)signal;
  sem_post(&told);
}

static void ignore(int signal) { (void)signal; }

static void make_pipe(void) {
  if (pipe(ends) != 0) _exit(kBroken);
}

static int read_pipe(void) {
  char byte;
  return (int)read(ends[0], &byte, 1);
}

/* A daemon that is told to end by SIGTERM. */
static int self_pipe(void) {
  make_pipe();
  handle(SIGTERM, write_to_pipe);
  say_ready();
  for (;;) {
    const int got = read_pipe();
    if (got == 1) return kWell;
    if (got >= 0 || errno != EINTR) return kBroken;
  }
}

/* Its read ends by EINTR. */
static int alarm_in_read(void) {
  make_pipe();
  handle(SIGALRM, ignore);
  alarm(4);
  say_ready();
  return read_pipe() < 0 && errno == EINTR ? kWell : kBroken;
}

static int sem_in_handler(void) {
  sem_init(&told, 0, 0);
  handle(SIGTERM, post);
  say_ready();
  while (sem_wait(&told) != 0) {
  }
  return kWell;
}

static void* sleep_on(void* unused) {
  (void)unused;
  for (;;) pause();
  return NULL;
}

/* Forked beside a thread, so that each child has lost one; each waits for SIGTERM, and so does the first process. */
static int prefork(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, sleep_on, NULL);
  sem_init(&told, 0, 0);
  handle(SIGTERM, post);
  pid_t children[2];
  for (int i = 0; i < 2; ++i) {
    children[i] = fork();
    if (children[i] == 0) {
      while (sem_wait(&told) != 0) {
      }
      _exit(0);
    }
  }
  say_ready();
  while (sem_wait(&told) != 0) {
  }
  int well = 1;
  for (int i = 0; i < 2; ++i) {
    int status;
    kill(children[i], SIGTERM);
    if (waitpid(children[i], &status, 0) != children[i] || status != 0) well = 0;
  }
  return well ? kWell : kBroken;
}

/* Nothing but the child's alarm ends this. */
static int child_has_alarm(void) {
  make_pipe();
  const pid_t child = fork();
  if (child == 0) {
    handle(SIGALRM, ignore);
    alarm(4);
    _exit(read_pipe() < 0 && errno == EINTR ? 0 : kBroken);
  }
  close(ends[1]);
  say_ready();
  int status;
  return read_pipe() == 0 && waitpid(child, &status, 0) == child && status == 0 ? kWell : kBroken;
}

/* The writing end travels, in a message that a child takes after four seconds. The reader has one, too, and never
 * writes. */
static int descriptor_on_its_way(void) {
  int sockets[2];
  make_pipe();
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return kBroken;
  char byte = 'x';
  char space[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec data = {&byte, 1};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  struct cmsghdr* const control = CMSG_FIRSTHDR(&message);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    close(ends[1]);
    close(sockets[0]);
    sleep(4);
    if (recvmsg(sockets[1], &message, 0) != 1) _exit(kBroken);
    memcpy(&ends[1], CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof ends[1]);
    _exit(write(ends[1], "x", 1) == 1 ? 0 : kBroken);
  }
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(control), &ends[1], sizeof ends[1]);
  if (sendmsg(sockets[0], &message, 0) != 1) return kBroken;
  say_ready();
  return read_pipe() == 1 ? kWell : kBroken;
}

static void slow_child_handler(void) { sleep(5); }

/* --hang-after 0.2 calls a handler stalled after two seconds. */
static int slow_atfork(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, sleep_on, NULL);
  pthread_atfork(NULL, NULL, slow_child_handler);
  say_ready();
  int status;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  return waitpid(child, &status, 0) == child && status == 0 ? kWell : kBroken;
}

/* The twins. */
static int own_pipe(void) {
  make_pipe();
  say_ready();
  return read_pipe();
}

/* Rust's standard library and the JVM have handlers for faults: none of them is for this. */
static int own_pipe_with_fault_handlers(void) {
  handle(SIGSEGV, ignore);
  handle(SIGBUS, ignore);
  return own_pipe();
}

/* Blocked for as long as it waits: no handler runs. */
static int own_pipe_with_blocked_signal(void) {
  sigset_t signals;
  handle(SIGTERM, ignore);
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  return own_pipe();
}

static int lost_poster(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, sleep_on, NULL);
  sem_init(&told, 0, 0);
  const pid_t child = fork();
  if (child == 0) {
    while (sem_wait(&told) != 0) {
    }
    _exit(0);
  }
  say_ready();
  int status;
  return waitpid(child, &status, 0) == child ? 0 : kBroken;
}

static const struct {
  const char* name;
  int (*run)(void);
} kModes[] = {
    {"self_pipe", self_pipe},
    {"alarm_in_read", alarm_in_read},
    {"sem_in_handler", sem_in_handler},
    {"prefork", prefork},
    {"child_has_alarm", child_has_alarm},
    {"descriptor_on_its_way", descriptor_on_its_way},
    {"slow_atfork", slow_atfork},
    {"own_pipe", own_pipe},
    {"own_pipe_with_fault_handlers", own_pipe_with_fault_handlers},
    {"own_pipe_with_blocked_signal", own_pipe_with_blocked_signal},
    {"lost_poster", lost_poster},
};

int main(int argc, char** argv) {
  for (size_t i = 0; argc > 1 && i < sizeof kModes / sizeof *kModes; ++i) {
    if (strcmp(argv[1], kModes[i].name) == 0) return kModes[i].run();
  }
  return kBroken;
}
