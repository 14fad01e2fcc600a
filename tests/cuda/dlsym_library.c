/* A library that asks dlsym about things that depend on who asks. It defines one function that the program defines,
 * too, and is opened with RTLD_LOCAL. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

int shared_name(void) { return 2; }
int only_here(void) { return 3; }

int (*library_default(void))(void) { return (int (*)(void))dlsym(RTLD_DEFAULT, "only_here"); }
int (*library_next(void))(void) { return (int (*)(void))dlsym(RTLD_NEXT, "shared_name"); }
void* library_cuda(void) { return dlsym(RTLD_DEFAULT, "cuInit"); }
