/* A preload library that changes what a program sees. The environment variable BAD_GUEST names one change. With each
 * change the probes must show a difference. Without the variable they must show none. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool breaks(const char* rule) {
  const char* const wanted = getenv("BAD_GUEST");
  return wanted != NULL && strcmp(wanted, rule) == 0;
}

/* `errno`: sem_wait() changes errno. `eintr`: sem_wait() hides EINTR. `cancellation`: sem_wait() disables cancellation.
 * `cancellation-point`: sem_wait() is a cancellation point only if it must wait. */
int sem_wait(sem_t* semaphore) {
  int (*const next)(sem_t*) = (int (*)(sem_t*))dlsym(RTLD_NEXT, "sem_wait");
  int state = 0;
  int result = 0;
  if (breaks("cancellation-point") && sem_trywait(semaphore) == 0) return 0;
  if (breaks("cancellation")) pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  do {
    result = next(semaphore);
  } while (result != 0 && errno == EINTR && breaks("eintr"));
  if (breaks("cancellation")) pthread_setcancelstate(state, &state);
  if (breaks("errno")) errno = ENOENT;
  return result;
}

/* `result`: the function returns EBUSY instead of ETIMEDOUT. `deadline`: the deadline that it uses is too early. */
int pthread_mutex_timedlock(pthread_mutex_t* mutex, const struct timespec* deadline) {
  int (*const next)(pthread_mutex_t*, const struct timespec*) =
      (int (*)(pthread_mutex_t*, const struct timespec*))dlsym(RTLD_NEXT, "pthread_mutex_timedlock");
  const struct timespec past = {1, 0};
  const int result = next(mutex, breaks("deadline") && deadline->tv_nsec >= 0 ? &past : deadline);
  return result == ETIMEDOUT && breaks("result") ? EBUSY : result;
}

/* `state`: the mutex is not locked after the wait. */
int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const struct timespec* deadline) {
  int (*const next)(pthread_cond_t*, pthread_mutex_t*, const struct timespec*) =
      (int (*)(pthread_cond_t*, pthread_mutex_t*, const struct timespec*))dlvsym(RTLD_NEXT, "pthread_cond_timedwait",
                                                                                 "GLIBC_2.3.2");
  const int result = next(condition, mutex, deadline);
  if (breaks("state")) pthread_mutex_unlock(mutex);
  return result;
}

/* `stack`: pthread_mutex_trylock() uses more stack than the smallest stack has. */
__attribute__((noinline)) static void fill(void) {
  volatile char bytes[16 << 10];
  for (unsigned i = 0; i < sizeof bytes; i += 512) bytes[i] = 1;
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  int (*const next)(pthread_mutex_t*) = (int (*)(pthread_mutex_t*))dlsym(RTLD_NEXT, "pthread_mutex_trylock");
  if (breaks("stack")) fill();
  return next(mutex);
}
