/* A library that defines functions with names that libc, libstdc++ and libgomp also define. The arguments and results
 * of its functions are different. The names are exported, so the loader decides which function a call inside the
 * library reaches. */
#include "own_library.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

static int calls;

/* Names of libc. */
__attribute__((visibility("default"))) int wait(int number) { return ++calls, number * 2; }
__attribute__((visibility("default"))) double send(double one, double other) { return ++calls, one * other; }
__attribute__((visibility("default"))) const char* connect(const char* host, ...) {
  va_list arguments;
  va_start(arguments, host);
  const double last = (va_arg(arguments, int), va_arg(arguments, double));
  va_end(arguments);
  return ++calls, last == 2.5 ? host : NULL;
}
__attribute__((visibility("default"))) struct Triple clone(struct Triple triple) {
  ++calls;
  return (struct Triple){triple.c, triple.b, triple.a};
}
__attribute__((visibility("default"))) long pause(long a, long b, long c, long d, long e, long f, long g, long h) {
  return ++calls, a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}
__attribute__((visibility("default"))) float recv(float value) { return ++calls, value / 2; }
__attribute__((visibility("default"))) int pthread_mutex_lock(const char* text) { return ++calls, text[0]; }

/* Names of libstdc++. The library defines two of the three functions for guards. Its guard has another layout. */
__attribute__((visibility("default"))) int __cxa_guard_acquire(struct Guard* guard) {
  return ++calls, guard->count++ == 0;
}
__attribute__((visibility("default"))) void __cxa_guard_release(struct Guard* guard) { ++calls, guard->released = 1; }

/* A name of libgomp. */
__attribute__((visibility("default"))) int GOMP_parallel(int number) { return ++calls, number + 1; }

int use_own(void) {
  struct Guard guard = {0, 0};
  const struct Triple turned = clone((struct Triple){1, 2, 3});
  int wrong = 0;
  wrong += wait(21) != 42;
  wrong += send(1.5, 4) != 6;
  wrong += connect("host", 1, 2.5) == NULL;
  wrong += turned.a != 3 || turned.b != 2 || turned.c != 1;
  wrong += pause(1, 2, 3, 4, 5, 6, 7, 8) != 204;
  wrong += recv(3) != 1.5F;
  wrong += pthread_mutex_lock("x") != 'x';
  wrong += __cxa_guard_acquire(&guard) != 1 || __cxa_guard_acquire(&guard) != 0;
  __cxa_guard_release(&guard);
  wrong += guard.released != 1;
  wrong += GOMP_parallel(4) != 5;
  return wrong == 0 && calls == 11 ? 0 : 100 + wrong;
}

void* address_of_own_wait(void) { return (void*)wait; }
