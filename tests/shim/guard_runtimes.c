/* A program without a C++ runtime loads two libraries, each of which brings a C++ runtime. One needs libstdc++, the
 * other has its own runtime. Both are opened with RTLD_LOCAL, so the runtime of one is not in the scope of the other.
 * With the shim each library must use the runtime to which the loader would bind it without the shim.
 *
 *   guard_runtimes STANDARD_PLUGIN OWN_PLUGIN     exit status 0 if each library used the right runtime
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static int failures;

static void expect(const char* what, int got, int wanted) {
  if (got == wanted) return;
  fprintf(stderr, "%s: %d, not %d\n", what, got, wanted);
  ++failures;
}

typedef int (*function)(void);

static void* open_plugin(const char* path, function* use, function* calls) {
  void* const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
  *use = (function)(size_t)dlsym(handle, "use_static");
  *calls = (function)(size_t)dlsym(handle, "own_calls");
  return handle;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  function use;
  function calls;
  /* The program opens only the plugin with its own runtime, several times, perhaps at the same address. */
  for (int round = 0; round < 3; ++round) {
    void* const own = open_plugin(argv[2], &use, &calls);
    expect("own: value", use(), 42);
    expect("own: value again", use(), 42);
    expect("own: calls of its own runtime", calls(), 2);
    dlclose(own);
  }
  function own_use;
  function own_calls;
  function standard_calls;
  open_plugin(argv[1], &use, &standard_calls);
  expect("standard: value", use(), 42);
  expect("standard: has no runtime of its own", standard_calls == NULL, 1);
  open_plugin(argv[2], &own_use, &own_calls);
  expect("own beside standard: value", own_use(), 42);
  expect("own beside standard: calls", own_calls(), 2);
  expect("standard: value again", use(), 42);
  return failures == 0 ? 0 : 1;
}
