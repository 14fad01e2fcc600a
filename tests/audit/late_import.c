/* A library that needs glibc 2.34. The shim must not need it. */
#define _GNU_SOURCE
#include <unistd.h>

int late_import(void) { return (int)_Fork(); }
