/* A library that imports only what the shim may import. With ONE_MORE it imports one more function of libc. */
#include <errno.h>
#include <string.h>

int few_imports(const char* text) {
#ifdef ONE_MORE
  return (int)strlen(text) + errno;
#else
  return *text + errno;
#endif
}
