// Programs that hang, for the tests of hostile files. Each program writes a byte when it is about to hang.
//   hanging load LIBRARY          calls stuck() of a library
//   hanging hold N                reads from a pipe that it holds open for writing by N descriptors
//   hanging poll THREADS N        has THREADS threads, and each polls N entries
//   hanging share PROCESSES THREADS  reads from a pipe in each of PROCESSES processes with THREADS threads; all hold it open
//   hanging crowd PROCESSES N     like `share PROCESSES 1`, and each process has N more descriptors
//   hanging tree DEPTH IDLE STUCK  a chain of DEPTH processes; the last has IDLE children that sleep, and STUCK that hang
//   hanging receive THREADS       has THREADS threads, and each waits for a message, with a time limit of an hour
//   hanging lock THREADS          locks a mutex twice, and THREADS further threads wait for the mutex
//   hanging vdso FILE             writes a library over the vDSO, and calls the entry of the library, which reads from a pipe
//   hanging map FILE N            maps a file N times as code, changes the ELF header in each mapping, and hangs
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

static void fail(const char* what) {
  perror(what);
  exit(2);
}

static void say_ready(void) {
  if (write(STDOUT_FILENO, "x", 1) != 1) fail("write");
}

static void read_forever(void) {
  int ends[2];
  char byte;
  if (pipe(ends) != 0) fail("pipe");
  say_ready();
  while (read(ends[0], &byte, 1) > 0) {
  }
}

static void load(const char* path) {
  int ends[2];
  void* const library = dlopen(path, RTLD_NOW);
  int (*stuck)(int) = NULL;
  if (library != NULL) *(void**)&stuck = dlsym(library, "stuck");
  if (stuck == NULL || pipe(ends) != 0) fail("load");
  say_ready();
  stuck(ends[0]);
}

static void raise_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) fail("getrlimit");
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) fail("setrlimit");
}

static void hold(int count) {
  int ends[2];
  char byte;
  raise_limit();
  if (pipe(ends) != 0) fail("pipe");
  for (int i = 1; i < count; ++i) {
    if (dup(ends[1]) < 0) fail("dup");
  }
  say_ready();
  while (read(ends[0], &byte, 1) > 0) {
  }
}

static struct pollfd* entries;
static int entry_count;

static void* poll_forever(void* unused) {
  for (;;) poll(entries, (nfds_t)entry_count, -1);
  return unused;
}

static void poll_many(int threads, int count) {
  int ends[2];
  raise_limit();
  if (pipe(ends) != 0) fail("pipe");
  entries = calloc((size_t)count, sizeof *entries);
  entry_count = count;
  for (int i = 0; i < count; ++i) {
    entries[i].fd = dup(ends[0]);
    entries[i].events = POLLIN;
    if (entries[i].fd < 0) fail("dup");
  }
  for (int i = 1; i < threads; ++i) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    if (pthread_create(&thread, &attributes, poll_forever, NULL) != 0) fail("pthread_create");
  }
  say_ready();
  poll_forever(NULL);
}

static int shared_ends[2];

static void* read_shared(void* unused) {
  char byte;
  while (read(shared_ends[0], &byte, 1) > 0) {
  }
  return unused;
}

static void share(int processes, int threads) {
  if (pipe(shared_ends) != 0) fail("pipe");
  int is_child = 0;
  for (int i = 1; i < processes && !is_child; ++i) {
    const pid_t child = fork();
    if (child < 0) fail("fork");
    is_child = child == 0;
  }
  if (is_child) prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int i = 1; i < threads; ++i) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    if (pthread_create(&thread, &attributes, read_shared, NULL) != 0) fail("pthread_create");
  }
  if (!is_child) say_ready();
  read_shared(NULL);
}

static void crowd(int processes, int count) {
  raise_limit();
  const int file = open("/dev/null", O_RDONLY);
  if (file < 0) fail("/dev/null");
  for (int i = 1; i < count; ++i) {
    if (dup(file) < 0) fail("dup");
  }
  share(processes, 1);
}

// Forks a child that ends with its parent. Returns true in the child.
static int fork_bound(void) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child != 0) return 0;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(2);
  return 1;
}

static void tree(int depth, int idle, int stuck) {
  int is_last = 1;
  for (int i = 1; i < depth && is_last; ++i) is_last = fork_bound();
  for (int i = 0; is_last && i < idle + stuck; ++i) {
    if (!fork_bound()) continue;
    int ends[2];
    char byte;
    if (i < idle) {
      for (;;) pause();
    }
    if (pipe(ends) != 0) fail("pipe");
    while (read(ends[0], &byte, 1) > 0) {
    }
  }
  if (is_last) say_ready();
  for (;;) pause();
}

// Waits up to an hour for a message. The kernel does not restart a recv() with SO_RCVTIMEO that a stop interrupted.
static void* receive_slowly(void* unused) {
  const struct timeval limit = {3600, 0};
  int ends[2];
  char byte;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 ||
      setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0)
    fail("socket");
  for (;;) {
    if (recv(ends[0], &byte, 1, 0) < 0 && errno == EINTR) _exit(3);
  }
  return unused;
}

static void receive_many(int threads) {
  for (int i = 1; i < threads; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, receive_slowly, NULL) != 0) fail("pthread_create");
  }
  say_ready();
  receive_slowly(NULL);
}

static void* wait_for_mutex(void* mutex) {
  pthread_mutex_lock(mutex);
  return NULL;
}

static void lock_twice(int threads) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_t thread;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < threads; ++i) {
    if (pthread_create(&thread, NULL, wait_for_mutex, &mutex) != 0) fail("pthread_create");
  }
  say_ready();
  pthread_mutex_lock(&mutex);
}

static void map_many(const char* path, int count) {
  const int fd = open(path, O_RDONLY);
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) fail(path);
  for (int i = 0; i < count; ++i) {
    char* const at = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) fail("mmap");
    at[48] ^= 1;  // changes e_flags, so the mapping differs from the file
    if (mprotect(at, (size_t)status.st_size, PROT_READ | PROT_EXEC) != 0) fail("mprotect");
    // A page between two mappings, so that the kernel does not join them.
    if (mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) fail("mmap");
  }
  close(fd);
  read_forever();
}

static void replace_vdso(const char* path) {
  int ends[2];
  const int fd = open(path, O_RDONLY);
  char* const vdso = (char*)getauxval(AT_SYSINFO_EHDR);
  const size_t room = 2 * 4096;
  if (fd < 0 || pipe(ends) != 0 || vdso == NULL) fail(path);
  if (mprotect(vdso, room, PROT_READ | PROT_WRITE | PROT_EXEC) != 0 || read(fd, vdso, room) <= 0) fail("vdso");
  if (mprotect(vdso, room, PROT_READ | PROT_EXEC) != 0) fail("mprotect");
  close(fd);
  int (*entry)(int) = NULL;
  char* const at = vdso + ((const Elf64_Ehdr*)vdso)->e_entry;
  memcpy(&entry, &at, sizeof entry);
  say_ready();
  entry(ends[0]);
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "load") == 0) load(argv[2]);
  if (argc == 3 && strcmp(argv[1], "hold") == 0) hold(atoi(argv[2]));
  if (argc == 4 && strcmp(argv[1], "poll") == 0) poll_many(atoi(argv[2]), atoi(argv[3]));
  if (argc == 4 && strcmp(argv[1], "share") == 0) share(atoi(argv[2]), atoi(argv[3]));
  if (argc == 4 && strcmp(argv[1], "crowd") == 0) crowd(atoi(argv[2]), atoi(argv[3]));
  if (argc == 5 && strcmp(argv[1], "tree") == 0) tree(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
  if (argc == 3 && strcmp(argv[1], "receive") == 0) receive_many(atoi(argv[2]));
  if (argc == 3 && strcmp(argv[1], "lock") == 0) lock_twice(atoi(argv[2]));
  if (argc == 3 && strcmp(argv[1], "vdso") == 0) replace_vdso(argv[2]);
  if (argc == 4 && strcmp(argv[1], "map") == 0) map_many(argv[2], atoi(argv[3]));
  return 2;
}
