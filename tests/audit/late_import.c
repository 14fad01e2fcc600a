/* A library that needs glibc 2.34, because it imports _Fork(). The shim must not need a glibc later than 2.28. */
#define _GNU_SOURCE
#include <unistd.h>

int late_import(void) { return (int)_Fork(); }
