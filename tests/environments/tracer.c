/* A preload library that traces calls. It replaces many functions. The shim hooks some of these functions, too. At the
 * first call of a function, the library finds the next function of the same name by dlsym. It counts all calls. If the
 * environment variable TRACER_FILE is set, the library appends the count to that file when the process ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static unsigned long calls;
static __thread int is_inside;

static void* find(void** function, const char* name) {
  if (*function == NULL) *function = dlsym(RTLD_NEXT, name);
  return *function;
}

/* Counts a call while it holds a lock of this library, as other tracers do. The calls that lock and unlock the lock go
 * through the hooks of the libraries that are loaded after this one. */
static void count(void) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static void* lock;
  static void* unlock;
  if (is_inside++ == 0) {
    ((int (*)(pthread_mutex_t*))find(&lock, "pthread_mutex_lock"))(&mutex);
    ++calls;
    ((int (*)(pthread_mutex_t*))find(&unlock, "pthread_mutex_unlock"))(&mutex);
  }
  --is_inside;
}

#define TRACED(result, name, parameters, arguments)             \
  result name parameters {                                      \
    static void* next;                                          \
    count();                                                    \
    return ((result(*) parameters)find(&next, #name))arguments; \
  }

TRACED(int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
TRACED(int, pthread_mutex_unlock, (pthread_mutex_t * mutex), (mutex))
TRACED(int, pthread_create,
       (pthread_t * thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument),
       (thread, attributes, start, argument))
TRACED(int, pthread_join, (pthread_t thread, void** result), (thread, result))
TRACED(pid_t, fork, (void), ())
TRACED(pid_t, waitpid, (pid_t pid, int* status, int options), (pid, status, options))
TRACED(ssize_t, write, (int file, const void* bytes, size_t count_of), (file, bytes, count_of))
TRACED(ssize_t, read, (int file, void* bytes, size_t count_of), (file, bytes, count_of))
TRACED(int, close, (int file), (file))
TRACED(size_t, strlen, (const char* text), (text))
TRACED(int, strcmp, (const char* one, const char* other), (one, other))
TRACED(int, memcmp, (const void* one, const void* other, size_t bytes), (one, other, bytes))
TRACED(void*, memcpy, (void* to, const void* from, size_t bytes), (to, from, bytes))
TRACED(void*, memset, (void* to, int value, size_t bytes), (to, value, bytes))
TRACED(int, clock_gettime, (clockid_t clock, struct timespec* now), (clock, now))

__attribute__((constructor)) static void begin(void) { count(); }

__attribute__((destructor)) static void end(void) {
  const char* const path = getenv("TRACER_FILE");
  const int file = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file >= 0) dprintf(file, "%lu\n", calls);
  if (file >= 0) close(file);
}
