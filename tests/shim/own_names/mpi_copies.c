/* mpi_copies ONE TWO: ONE and TWO are libraries, each linked with its own copy of MPI. Both are opened with RTLD_LOCAL,
 * closed, and opened again in the other order. Each call must reach the copy that its caller is linked with, also in a
 * forked child. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct Caller {
  const char* path;
  int number;
  void* handle;
  int (*call)(int what);
};

static int wrong;

static void expect(int got, int wanted, const char* what, int number) {
  if (got == wanted) return;
  printf("%s of copy %d: %d, not %d\n", what, number, got, wanted);
  ++wrong;
}

static void open_caller(struct Caller* caller, int mode) {
  caller->handle = dlopen(caller->path, mode | RTLD_LOCAL);
  if (caller->handle == NULL) {
    fprintf(stderr, "mpi_copies: %s\n", dlerror());
    exit(2);
  }
  *(void**)&caller->call = dlsym(caller->handle, "call_mpi");
  expect(caller->call(0), 0, "MPI_Init", caller->number);
}

static void use(const struct Caller* caller, int in_child) {
  for (int i = 0; i < 3; ++i) {
    expect(caller->call(1), caller->number + in_child, "MPI_Barrier", caller->number);
    expect(caller->call(2), caller->number * 1000 + 6, "MPI_Send", caller->number);
  }
}

static void use_in_child(const struct Caller* one, const struct Caller* other) {
  int status = 0;
  const pid_t pid = fork();
  if (pid == 0) {
    use(one, 100);
    use(other, 100);
    fflush(stdout);
    _exit(wrong != 0);
  }
  if (waitpid(pid, &status, 0) != pid) exit(2);
  expect(status, 0, "the child", 0);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  struct Caller one = {argv[1], 1, NULL, NULL};
  struct Caller two = {argv[2], 2, NULL, NULL};
  for (int round = 0; round < 6; ++round) {
    struct Caller* const first = round % 2 == 0 ? &one : &two;
    struct Caller* const second = round % 2 == 0 ? &two : &one;
    const int mode = round % 3 == 0 ? RTLD_LAZY : RTLD_NOW;
    open_caller(first, mode);
    use(first, 0);
    /* This mapping takes address space, so that the loader maps the next library at another address. */
    if (mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) return 2;
    open_caller(second, mode);
    use(second, 0);
    use(first, 0);
    use_in_child(first, second);
    dlclose(first->handle);
    use(second, 0);
    open_caller(first, mode);
    use(first, 0);
    use(second, 0);
    dlclose(first->handle);
    dlclose(second->handle);
  }
  return wrong != 0;
}
