// Opens the library of plugin.c with RTLD_LOCAL, as interpreters open their extensions. So a global look-up of symbols
// sees neither the library nor the libraries that it needs.
#pragma once

#include <dlfcn.h>
#include <string.h>

#include "../baton.h"

struct plugin {
  int (*sum)(int* threads);
  void (*pause)(void);
};

static inline struct plugin plugin_open(const char* path) {
  struct plugin opened;
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* const sum = library == NULL ? NULL : dlsym(library, "plugin_sum");
  void* const pause = library == NULL ? NULL : dlsym(library, "plugin_pause");
  if (sum == NULL || pause == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  memcpy(&opened.sum, &sum, sizeof opened.sum);
  memcpy(&opened.pause, &pause, sizeof opened.pause);
  return opened;
}
