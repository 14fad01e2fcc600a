/* A library that imports what the shim may import, and with ONE_MORE one function of libc besides. */
#include <errno.h>
#include <string.h>

int few_imports(const char* text) {
#ifdef ONE_MORE
  return (int)strlen(text) + errno;
#else
  return *text + errno;
#endif
}
