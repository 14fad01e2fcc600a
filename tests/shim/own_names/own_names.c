/* own_names LIBRARY: the program is linked with own_library, and looks up names that the library defines. It also opens
 * LIBRARY, a copy of own_library, with RTLD_DEEPBIND, so that the copy finds its own functions first. The program
 * prints each result that differs from the result without the shim. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "own_library.h"

/* No library of this program defines these names, so their addresses must be null. */
extern void GOMP_parallel_start(void) __attribute__((weak));
extern void GOMP_parallel_end(void) __attribute__((weak));
extern int omp_pause_resource_all(int) __attribute__((weak));
extern void __cxa_guard_abort(void*) __attribute__((weak));
extern int cuInit(unsigned) __attribute__((weak));
extern int MPI_Barrier(void*) __attribute__((weak));
extern void ucp_cleanup(void*) __attribute__((weak));

static int differences;

static void expect(int is_so, const char* what) {
  if (is_so) return;
  printf("different: %s\n", what);
  ++differences;
}

static void look_at_weak_references(void) {
  expect(GOMP_parallel_start == NULL, "&GOMP_parallel_start");
  expect(GOMP_parallel_end == NULL, "&GOMP_parallel_end");
  expect(omp_pause_resource_all == NULL, "&omp_pause_resource_all");
  expect(__cxa_guard_abort == NULL, "&__cxa_guard_abort");
  expect(cuInit == NULL, "&cuInit");
  expect(MPI_Barrier == NULL, "&MPI_Barrier");
  expect(ucp_cleanup == NULL, "&ucp_cleanup");
}

static void look_up_absent_names(void) {
  static const char* const kAbsent[] = {
      "GOMP_parallel_start", "GOMP_parallel_loop_static", "omp_pause_resource", "cuInit", "cuMemFree_v2", "MPI_Send",
      "ucp_cleanup"};
  void* const program = dlopen(NULL, RTLD_NOW);
  for (size_t i = 0; i < sizeof kAbsent / sizeof *kAbsent; ++i) {
    expect(dlsym(RTLD_DEFAULT, kAbsent[i]) == NULL, kAbsent[i]);
    expect(dlsym(RTLD_NEXT, kAbsent[i]) == NULL, kAbsent[i]);
    expect(dlsym(program, kAbsent[i]) == NULL, kAbsent[i]);
  }
}

static void look_up_own_names(void* library) {
  expect(dlsym(RTLD_DEFAULT, "wait") == (void*)wait, "dlsym(RTLD_DEFAULT, \"wait\")");
  expect(dlsym(RTLD_NEXT, "wait") == (void*)wait, "dlsym(RTLD_NEXT, \"wait\")");
  expect(dlsym(RTLD_DEFAULT, "GOMP_parallel") == (void*)GOMP_parallel, "dlsym(RTLD_DEFAULT, \"GOMP_parallel\")");
  expect(dlsym(RTLD_DEFAULT, "__cxa_guard_acquire") == (void*)__cxa_guard_acquire, "dlsym of the guard");
  expect(address_of_own_wait() == (void*)wait, "&wait in the library");
  Dl_info info;
  expect(dladdr((void*)wait, &info) != 0 && dlsym(library, "wait") != NULL, "dladdr(&wait)");
  /* Only libc has this name: a reference and dlsym must give the same function. */
  expect(dlsym(RTLD_DEFAULT, "atoi") == (void*)atoi, "dlsym(RTLD_DEFAULT, \"atoi\")");
}

int main(int argc, char** argv) {
  void* const library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : NULL;
  if (library == NULL) {
    fprintf(stderr, "own_names: %s\n", dlerror());
    return 2;
  }
  expect(use_own() == 0, "calls inside of the library that was loaded at the start");
  int (*const use_opened)(void) = (int (*)(void))dlsym(library, "use_own");
  expect(use_opened != NULL && use_opened() == 0, "calls inside of the library that was opened");
  expect(wait(4) == 8 && send(2, 3) == 6, "calls of the program");
  look_at_weak_references();
  look_up_absent_names();
  look_up_own_names(library);
  return differences == 0 ? 0 : 1;
}
