/* A program that is bound to the condition variable functions of GLIBC_2.2.5. These functions store a pointer to the
 * real condition variable in the first word of pthread_cond_t, and never change its other bytes. The functions of
 * GLIBC_2.3.2 would change the other bytes. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int old_init(pthread_cond_t* condition, const void* attributes);
int old_wait(pthread_cond_t* condition, pthread_mutex_t* mutex);
int old_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const struct timespec* deadline);
int old_signal(pthread_cond_t* condition);
int old_broadcast(pthread_cond_t* condition);
int old_destroy(pthread_cond_t* condition);
__asm__(".symver old_init, pthread_cond_init@GLIBC_2.2.5");
__asm__(".symver old_wait, pthread_cond_wait@GLIBC_2.2.5");
__asm__(".symver old_timedwait, pthread_cond_timedwait@GLIBC_2.2.5");
__asm__(".symver old_signal, pthread_cond_signal@GLIBC_2.2.5");
__asm__(".symver old_broadcast, pthread_cond_broadcast@GLIBC_2.2.5");
__asm__(".symver old_destroy, pthread_cond_destroy@GLIBC_2.2.5");

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition;
static int turns;

static void* take_turns(void* unused) {
  pthread_mutex_lock(&mutex);
  while (turns < 1000) {
    ++turns;
    old_signal(&condition);
    if (turns < 1000) old_wait(&condition, &mutex);
  }
  old_broadcast(&condition);
  pthread_mutex_unlock(&mutex);
  return unused;
}

static int fail(const char* what) {
  fprintf(stderr, "old_versions: %s\n", what);
  return 1;
}

int main(void) {
  const struct timespec past = {1, 0};
  pthread_t threads[2];
  alarm(50); /* a wait may never end if the shim calls the wrong version */
  memset(&condition, 0x5a, sizeof condition);
  if (old_init(&condition, NULL) != 0) return fail("init");
  pthread_mutex_lock(&mutex);
  if (old_timedwait(&condition, &mutex, &past) != ETIMEDOUT) return fail("timedwait");
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, take_turns, NULL);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  if (turns != 1000) return fail("turns");
  for (unsigned i = sizeof(void*); i < sizeof condition; ++i) {
    if (((const unsigned char*)&condition)[i] != 0x5a) return fail("another version wrote to it");
  }
  const pid_t child = fork();
  if (child == 0) _exit(old_signal(&condition) + old_broadcast(&condition));
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) return fail("child");
  return old_destroy(&condition) == 0 ? 0 : fail("destroy");
}
