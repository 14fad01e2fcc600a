/* Calls dlsym() in many ways, and prints the answers: the library that has the symbol, and the text of dlerror(). The
 * output must be identical without and with the shim. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int shared_name(void);
int shared_name(void) { return 1; }

static const char* base(const char* path) {
  const char* const slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

/* Prints which library has the symbol `name`. For a function that the shim interposes, this library would be the shim,
 * so the output would differ between the two runs. So the callers ask only for functions that the shim does not
 * interpose. */
static void show(const char* what, void* handle, const char* name) {
  Dl_info info;
  dlerror();
  errno = 4711;
  void* const found = dlsym(handle, name);
  const int error = errno;
  const char* const text = dlerror();
  printf("%s %s: ", what, name);
  if (found == NULL) {
    /* The text begins with the name of the object that was searched. This name is not printed, because it may be a
     * path. */
    const char* const colon = text != NULL ? strrchr(text, ':') : NULL;
    printf("none,%s", colon != NULL ? colon + 1 : " no text");
  } else if (dladdr(found, &info) != 0) {
    printf("in %s%s", base(info.dli_fname), text != NULL ? ", and an error" : "");
  }
  printf(", errno %d\n", error);
}

static void show_by_handle(void) {
  void* const libm = dlopen("libm.so.6", RTLD_NOW);
  void* const self = dlopen(NULL, RTLD_NOW);
  show("libm", libm, "cos");
  show("libm", libm, "cuInit");
  show("libm", libm, "cube_root_of_nothing");
  show("libm", libm, "c");
  show("libm", libm, "");
  show("self", self, "shared_name");
  show("self", self, "cuInit");
  show("self", self, "cuMemAlloc_v2");
  show("default", RTLD_DEFAULT, "shared_name");
  show("default", RTLD_DEFAULT, "cuInit");
  show("default", RTLD_DEFAULT, "cuGetProcAddress");
  show("next", RTLD_NEXT, "cuInit");
  show("next", RTLD_NEXT, "shared_name");
  show("next", RTLD_NEXT, "strtol");
  dlclose(libm);
}

static void show_by_caller(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) abort();
  int (*(*const ask_default)(void))(void) = (int (*(*)(void))(void))dlsym(library, "library_default");
  int (*(*const ask_next)(void))(void) = (int (*(*)(void))(void))dlsym(library, "library_next");
  void* (*const ask_cuda)(void) = (void* (*)(void))dlsym(library, "library_cuda");
  int (*const local)(void) = ask_default();
  int (*const next)(void) = ask_next();
  printf("the library looks up only_here, which returns %d\n", local != NULL ? local() : -1);
  printf("the library looks up the next shared_name, which returns %d\n", next != NULL ? next() : -1);
  printf("the library looks up cuInit: %s\n", ask_cuda() != NULL ? "found" : "none");
  printf("the program looks up only_here: %s\n", dlsym(RTLD_DEFAULT, "only_here") != NULL ? "found" : "none");
}

/* Each name ends at the end of its page. The next page is not mapped, so nothing after the name may be read. */
static void show_at_page_end(void) {
  const long page = sysconf(_SC_PAGESIZE);
  char* const memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || munmap(memory + page, page) != 0) abort();
  const char* const names[] = {"", "c", "cu", "x", "cuInit", "strlen", "M", "MP", "u", "uc", "MPI_Send", "ucp_cleanup"};
  for (unsigned i = 0; i < sizeof names / sizeof *names; ++i) {
    char* const name = memory + page - strlen(names[i]) - 1;
    strcpy(name, names[i]);
    printf("at the end of a page, %s: %s\n", names[i], dlsym(RTLD_DEFAULT, name) != NULL ? "found" : "none");
  }
  munmap(memory, page);
}

static volatile sig_atomic_t in_handler;
static void on_signal(int number) {
  (void)number;
  in_handler = dlsym(RTLD_DEFAULT, "strlen") != NULL;
}

static void* in_thread(void* unused) {
  show("thread", RTLD_DEFAULT, "shared_name");
  show("thread", RTLD_DEFAULT, "cuInit");
  show("thread", RTLD_DEFAULT, "MPI_Send");
  show("thread", RTLD_NEXT, "ucp_worker_progress");
  return unused;
}

/* Calls dlsym() before main(), perhaps also before the shim is ready. */
__attribute__((constructor)) static void before_main(void) {
  show("constructor", RTLD_DEFAULT, "shared_name");
  show("constructor", RTLD_DEFAULT, "cuInit");
}
__attribute__((destructor)) static void after_main(void) { show("destructor", RTLD_DEFAULT, "shared_name"); }

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  pthread_t thread;
  show_by_handle();
  show_by_caller(argv[1]);
  show_at_page_end();
  signal(SIGUSR1, on_signal);
  raise(SIGUSR1);
  printf("a signal handler finds strlen (1: yes): %d\n", (int)in_handler);
  pthread_create(&thread, NULL, in_thread, NULL);
  pthread_join(thread, NULL);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    show("child", RTLD_DEFAULT, "shared_name");
    show("child", RTLD_DEFAULT, "cuInit");
    fflush(stdout);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  return 7;
}
