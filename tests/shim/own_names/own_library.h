/* The functions of own_library. Their names are also names of functions in libc, libstdc++ or libgomp. */
#ifndef FORKSIGHT_TESTS_OWN_LIBRARY_H
#define FORKSIGHT_TESTS_OWN_LIBRARY_H

struct Triple {
  long a, b, c; /* returned in memory */
};
struct Guard {
  int count;
  int released;
};

int wait(int number);
double send(double one, double other);
const char* connect(const char* host, ...);
struct Triple clone(struct Triple triple);
long pause(long a, long b, long c, long d, long e, long f, long g, long h);
float recv(float value);
int pthread_mutex_lock(const char* text);
int __cxa_guard_acquire(struct Guard* guard);
void __cxa_guard_release(struct Guard* guard);
int GOMP_parallel(int number);

/* Returns 0 if each call reached the library's own function. */
int use_own(void);
void* address_of_own_wait(void);

#endif
