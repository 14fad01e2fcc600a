/* This library needs glibc 2.34. The check of the shim's imports must refuse it. */
#define _GNU_SOURCE
#include <unistd.h>

int late_import(void) { return (int)_Fork(); }
