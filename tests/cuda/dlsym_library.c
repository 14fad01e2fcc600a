/* A library that calls dlsym(). The result depends on which object calls dlsym(): here the library, not the program.
 * One function of the library has the same name as a function of the program. The program opens the library with
 * RTLD_LOCAL. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

int shared_name(void) { return 2; }
int only_here(void) { return 3; }

int (*library_default(void))(void) { return (int (*)(void))dlsym(RTLD_DEFAULT, "only_here"); }
int (*library_next(void))(void) { return (int (*)(void))dlsym(RTLD_NEXT, "shared_name"); }
void* library_cuda(void) { return dlsym(RTLD_DEFAULT, "cuInit"); }
