// Healthy processes with healthy children. Some of these children wait for something that only their parent or one of
// their own threads can do. That process or thread will do it.
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "waits.h"

enum { kWorkers = 3 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int is_over;
static int to_child[2];
static sem_t jobs;

static int wait_for(pid_t child) {
  int status = 0;
  const pid_t got = waitpid(child, &status, 0);
  return got == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The child ends when it reads a byte.
int wait_for_live_child(const char* path) {
  (void)path;
  const pid_t child = fork();
  if (child == 0) _exit(read_byte(STDIN_FILENO));
  say_ready();
  return wait_for(child);
}

// Each worker of this server answers one client, and ends.
int be_prefork_server(const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  const int server = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(server, (const struct sockaddr*)&address, sizeof address) != 0 || listen(server, 8) != 0) return -2;
  pid_t workers[kWorkers];
  for (int i = 0; i < kWorkers; ++i) {
    workers[i] = fork();
    if (workers[i] != 0) continue;
    const int client = accept(server, NULL, NULL);
    _exit(client >= 0 && write(client, "x", 1) == 1 ? 1 : 9);
  }
  say_ready();
  int good = 0;
  for (int i = 0; i < kWorkers; ++i) good += wait_for(workers[i]);
  errno = 0;
  return good;
}

// A thread of the parent runs this function. The child does not have this thread. The thread takes a mutex, and may
// hold the mutex at the fork. The child does not need the mutex.
static void* hold_mutex(void* nothing) {
  pthread_mutex_lock(&mutex);
  read_byte(STDIN_FILENO);
  pthread_mutex_unlock(&mutex);
  if (write(to_child[1], "x", 1) != 1) _exit(4);
  return nothing;
}

static void make_pipe(void) {
  if (pipe(to_child) != 0) _exit(3);
}

// The child waits for a byte from its parent. A thread of the parent sends this byte when it has read a byte itself.
int fork_reader(const char* path) {
  (void)path;
  make_pipe();
  const pthread_t holder = start(hold_mutex);
  const pid_t child = fork();
  if (child == 0) {
    close(to_child[1]);
    _exit(read_byte(to_child[0]));
  }
  say_ready();
  pthread_join(holder, NULL);
  return wait_for(child);
}

static void* tell_when_told(void* nothing) {
  read_byte(to_child[0]);
  pthread_mutex_lock(&mutex);
  is_over = 1;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&mutex);
  return nothing;
}

static void* sleep_in_pipe(void* fd) {
  read_byte(*(int*)fd);
  return NULL;
}

// The child has no copy of the parent's second thread. A thread that the child started wakes the child's first thread.
int fork_worker_with_threads(const char* path) {
  (void)path;
  static int never[2];
  make_pipe();
  if (pipe(never) != 0) return -2;
  pthread_t other;
  pthread_create(&other, NULL, sleep_in_pipe, &never[0]);
  const pid_t child = fork();
  if (child == 0) {
    const pthread_t teller = start(tell_when_told);
    pthread_mutex_lock(&mutex);
    while (!is_over) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    pthread_join(teller, NULL);
    _exit(7);
  }
  say_ready();
  read_byte(STDIN_FILENO);
  if (write(to_child[1], "x", 1) != 1) return -2;
  const int result = wait_for(child);
  errno = 0;
  return result;
}

static void* take_jobs(void* nothing) {
  while (sem_wait(&jobs) != 0 && errno == EINTR) continue;
  return nothing;
}

// The child has no copy of the parent's second thread. The worker threads that the child started wait for a semaphore.
// The child's first thread reads a byte that the parent sends.
int fork_worker_with_pool(const char* path) {
  (void)path;
  static int never[2];
  make_pipe();
  if (pipe(never) != 0 || sem_init(&jobs, 0, 0) != 0) return -2;
  pthread_t other;
  pthread_create(&other, NULL, sleep_in_pipe, &never[0]);
  const pid_t child = fork();
  if (child == 0) {
    pthread_t workers[kWorkers];
    for (int i = 0; i < kWorkers; ++i) workers[i] = start(take_jobs);
    const int got = read_byte(to_child[0]);
    for (int i = 0; i < kWorkers; ++i) sem_post(&jobs);
    for (int i = 0; i < kWorkers; ++i) pthread_join(workers[i], NULL);
    _exit(got == 1 ? 7 : 9);
  }
  say_ready();
  read_byte(STDIN_FILENO);
  if (write(to_child[1], "x", 1) != 1) return -2;
  const int result = wait_for(child);
  errno = 0;
  return result;
}

static void post(int signal) {
  (void)signal;
  sem_post(&jobs);
}

// Only a signal handler can wake this child. Daemons wait for SIGTERM in this way.
int fork_daemon(const char* path) {
  (void)path;
  static int never[2];
  if (pipe(never) != 0 || sem_init(&jobs, 0, 0) != 0) return -2;
  pthread_t other;
  pthread_create(&other, NULL, sleep_in_pipe, &never[0]);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGTERM, post);
    while (sem_wait(&jobs) != 0 && errno == EINTR) continue;
    _exit(7);
  }
  say_ready();
  read_byte(STDIN_FILENO);
  kill(child, SIGTERM);
  const int result = wait_for(child);
  errno = 0;
  return result;
}

// The parent holds the lock until it reads a byte.
int wait_for_file_lock(const char* path) {
  const int held = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (held < 0 || flock(held, LOCK_EX) != 0) return -2;
  const pid_t child = fork();
  if (child == 0) {
    const int mine = open(path, O_RDWR | O_CLOEXEC);
    close(held);
    _exit(flock(mine, LOCK_EX) == 0 ? 7 : errno);
  }
  say_ready();
  read_byte(STDIN_FILENO);
  flock(held, LOCK_UN);
  return wait_for(child);
}
