/* A library that needs glibc 2.34: the shim may not. */
#define _GNU_SOURCE
#include <unistd.h>

int late_import(void) { return (int)_Fork(); }
