/* open_main LIBRARY...: opens each library and calls its main(). When the process starts, the runtimes of the libraries
 * are not loaded. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    void* const library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    int (*opened_main)(void) = NULL;
    if (library != NULL) *(void**)&opened_main = dlsym(library, "main");
    if (opened_main == NULL) {
      fprintf(stderr, "open_main: %s\n", dlerror());
      return 2;
    }
    printf("%d\n", opened_main());
    fflush(stdout);
  }
  return 0;
}
