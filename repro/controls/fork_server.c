// Mechanism: none. A server forks workers. The server itself was forked before main had a second thread. Later a thread
//            of main holds a lock, and another one waits for work. The server has neither of these threads. Main sends
//            its requests to the server by pipes. Besides, main starts programs by posix_spawn() while it has all of
//            its threads.
// To blame:  nobody.
// User sees: nothing, and must not see a warning.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
#include <pthread.h>
#include <spawn.h>

#include "../baton.h"

enum { kWorkers = 4 };

extern char** environ;

static pthread_mutex_t cache = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_work = PTHREAD_COND_INITIALIZER;
static struct baton is_inside;

static void* load(void* unused) {
  pthread_mutex_lock(&cache);
  baton_pass(is_inside);
  park();
  return unused;
}

static void* wait_for_work(void* unused) {
  pthread_mutex_lock(&queue);
  baton_pass(is_inside);
  for (;;) pthread_cond_wait(&has_work, &queue);
  return unused;
}

static int square(int number) {
  pthread_mutex_lock(&cache);
  const int result = number * number;
  pthread_mutex_unlock(&cache);
  pthread_mutex_lock(&queue);
  pthread_cond_signal(&has_work);
  pthread_mutex_unlock(&queue);
  return result;
}

static void serve(int questions, int answers) {
  int number = 0;
  while (read(questions, &number, sizeof number) == sizeof number) {
    const pid_t worker = fork();
    if (worker == 0) {
      const int result = square(number);
      _exit(write(answers, &result, sizeof result) == sizeof result ? 0 : 1);
    }
    if (end_of(worker) != 0) abort();
  }
  _exit(0);
}

static int run_true(void) {
  char* const words[] = {"true", NULL};
  pid_t child = 0;
  if (posix_spawn(&child, "/bin/true", NULL, NULL, words, environ) != 0) abort();
  return end_of(child);
}

int main(void) {
  const struct baton questions = baton_make();
  const struct baton answers = baton_make();
  is_inside = baton_make();
  const pid_t server = fork();
  if (server == 0) {
    close(questions.end[1]);
    serve(questions.end[0], answers.end[1]);
  }
  pthread_t threads[2];
  if (pthread_create(&threads[0], NULL, load, NULL) != 0) abort();
  baton_wait(is_inside);
  if (pthread_create(&threads[1], NULL, wait_for_work, NULL) != 0) abort();
  baton_wait(is_inside);
  // The second thread releases this mutex when it begins to wait for work.
  pthread_mutex_lock(&queue);
  pthread_mutex_unlock(&queue);
  int sum = 0;
  for (int i = 0; i < kWorkers; ++i) {
    int result = 0;
    if (write(questions.end[1], &i, sizeof i) != sizeof i) abort();
    if (read(answers.end[0], &result, sizeof result) != sizeof result) abort();
    sum += result + run_true();
  }
  close(questions.end[1]);
  close(questions.end[0]);
  return end_of(server) == 0 && sum == 0 + 1 + 4 + 9 ? 0 : 1;
}
