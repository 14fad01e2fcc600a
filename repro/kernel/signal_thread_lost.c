// Mechanism: all threads block SIGTERM. One thread takes SIGTERM by sigwait() and tells the main loop to end. The
//            forked child inherits the signal mask, but not that thread. So SIGTERM stays pending in the child, and
//            nobody tells the child's main loop to end.
//            -DAWAKE:   the child reads from a pipe, and the parent can still write to it. So the child is not proven
//                       to hang. The parent sends SIGTERM, waits five seconds, and then kills the child.
// To blame:  the fork. The child needs such a thread of its own, or must unblock the signal.
// User sees: workers that SIGTERM does not end. Their parent waits for them, or kills them after some time.
// Fix:       start the thread in the child, too, or unblock the signal in the child.
// Repaired:  the child starts the thread.
//
// EXPECT-BARE: hang
// EXPECT: signal-thread-lost proven/likely hang culprit="the thread that takes SIGTERM" holder=taker victims=0
// EXPECT-WHY: signal-thread-lost proven/likely hang culprit="the thread that takes SIGTERM" holder=taker victims=0
// EXPECT-STACK: fork main@fork
// EXPECT-UNKNOWN(awake): one look shows only that the signal is pending; the child may still take it a moment later
// EXPECT(awake): signal-thread-lost likely may-hang culprit="the thread that takes SIGTERM" holder=taker victims=0
#include "signal_thread.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;
static int shall_end;

static void* taker_main(void* unused) {
  const sigset_t ends = set_of(SIGTERM);
  int signal = 0;
  pthread_setname_np(pthread_self(), "taker");
  taker_tid = gettid();
  baton_pass(taker_says);
  while (sigwait(&ends, &signal) != 0 || signal != SIGTERM) {
  }
  pthread_mutex_lock(&mutex);
  shall_end = 1;
  pthread_cond_signal(&told);
  pthread_mutex_unlock(&mutex);
  return unused;
}

static void serve(void) {
  pthread_mutex_lock(&mutex);
  while (!shall_end) pthread_cond_wait(&told, &mutex);
  pthread_mutex_unlock(&mutex);
}

#ifdef AWAKE
// Waits until the child sleeps in read(). If the child ran on after the signal was sent, forksight would report the
// lost signal later.
static void wait_until_reading(pid_t child) {
  char path[64];
  char text[8];
  snprintf(path, sizeof path, "/proc/%d/syscall", child);
  do {
    memset(text, 0, sizeof text);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) < 0) abort();
    close(fd);
  } while (strncmp(text, "0 ", 2) != 0);  // read
}

// Waits five seconds for the child's end, then sends SIGKILL.
static int end_by_force(pid_t child) {
  const sigset_t ended = set_of(SIGCHLD);
  const struct timespec patience = {.tv_sec = 5};
  if (sigtimedwait(&ended, NULL, &patience) != SIGCHLD) kill(child, SIGKILL);
  return end_of(child) == 128 + SIGKILL ? 0 : 1;
}
#endif

int main(void) {
  sigset_t blocked = set_of(SIGTERM);
  sigaddset(&blocked, SIGCHLD);
  pthread_sigmask(SIG_BLOCK, &blocked, NULL);
  start_taker(taker_main);
  wait_until_taking();
  const struct baton work = baton_make();
  const pid_t child = fork();  // MARK: fork
  if (child == 0) {
#if defined(AWAKE)
    baton_wait(work);
#elif defined(REPAIRED)
    start_taker(taker_main);
#endif
    serve();
    _exit(0);
  }
#ifdef AWAKE
  wait_until_reading(child);
#endif
  kill(child, SIGTERM);
#ifdef AWAKE
  const int status = end_by_force(child);
#else
  const int status = end_of(child);
#endif
  close(work.end[1]);
  return status;
}
