// Mechanism: none. A thread is inside of dlopen(). The library's constructor runs while the thread holds a lock of the
//            loader. The child loads a library itself, looks up a symbol and allocates memory. fork() resets this lock
//            of the loader, and malloc's locks. So none of these calls blocks, and the child ends at once.
//            The loader has another lock, which dl_iterate_phdr() takes. fork() does not reset that lock. The case
//            walk_of_objects shows a hang in that lock.
// Repaired:  the constructor has returned before the fork.
// To blame:  nobody.
// User sees: nothing, and must not see a warning.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "../baton.h"

// Called by the library's constructor (slow_library.c).
void constructor_runs(void);

static struct baton load_has_begun;
static const char* library;

void constructor_runs(void) {
  baton_pass(load_has_begun);
#ifndef REPAIRED
  park();
#endif
}

static void* loader_main(void* unused) {
  if (dlopen(library, RTLD_NOW) == NULL) abort();
  baton_pass(load_has_begun);
  park();
  return unused;
}

static int load_another(void) {
  void* const handle = dlopen("libm.so.6", RTLD_NOW);
  double (*square_root)(double) = NULL;
  void* const block = malloc(1 << 20);
  if (handle == NULL || block == NULL) return 1;
  memset(block, 1, 1 << 20);
  *(void**)&square_root = dlsym(handle, "sqrt");
  return square_root != NULL && square_root(4) == 2 ? 0 : 2;
}

int main(int argc, char** argv) {
  char path[4096];
  pthread_t loader;
  if (argc < 1) abort();
  snprintf(path, sizeof path, "%s", argv[0]);
  strcpy(strrchr(path, '/') + 1, "libfsslowload.so");
  library = path;
  load_has_begun = baton_make();
  pthread_create(&loader, NULL, loader_main, NULL);
  baton_wait(load_has_begun);
#ifdef REPAIRED
  baton_wait(load_has_begun);
#endif
  const pid_t child = fork();
  if (child == 0) _exit(load_another());
  const int status = end_of(child);
  _exit(status);  // exit() would wait until the constructor has returned
}
