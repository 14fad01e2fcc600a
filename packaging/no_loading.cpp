// Replaces libc's functions that load libraries, in the statically linked command. libc's own functions would load the
// libc of the machine into a process that contains another libc. dlerror() says why nothing is loaded.
#include <dlfcn.h>

extern "C" {

void* dlopen(const char*, int) { return nullptr; }

void* dlsym(void*, const char*) { return nullptr; }

int dlclose(void*) { return -1; }

int dlinfo(void*, int, void*) { return -1; }

char* dlerror() {
  static char text[] = "this build of forksight is linked statically and loads no libraries";
  return text;
}
}
