// Mechanism: none. A program has two threads. One of them holds a lock for ever. The program starts other programs in
//            all the ways that suspend the caller until the child execs: vfork() and exec, posix_spawn(), system(),
//            popen(). After every second vfork() the exec fails.
// To blame:  nobody.
// User sees: nothing, and must not see a warning.
// Fix:       none needed.
//
// EXPECT-BARE: ok
// EXPECT-NONE
#include <pthread.h>
#include <spawn.h>

#include "../baton.h"

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static struct baton has_lock;

static void* worker_main(void* unused) {
  pthread_mutex_lock(&registry);
  baton_pass(has_lock);
  park();
  return unused;
}

static int by_vfork(const char* path) {
  const pid_t child = vfork();
  if (child == 0) {
    execl(path, path, (char*)NULL);
    _exit(127);
  }
  return end_of(child);
}

int main(void) {
  pthread_t worker;
  pid_t spawned = -1;
  char* const argv[] = {"true", NULL};
  has_lock = baton_make();
  pthread_create(&worker, NULL, worker_main, NULL);
  baton_wait(has_lock);
  for (int i = 0; i < 20; ++i) {
    if (by_vfork("/bin/true") != 0 || by_vfork("/nowhere") != 127) return 1;
    if (posix_spawn(&spawned, "/bin/true", NULL, NULL, argv, NULL) != 0 || end_of(spawned) != 0) return 2;
    if (system("true") != 0) return 3;
    FILE* const pipe = popen("true", "r");
    if (pipe == NULL || pclose(pipe) != 0) return 4;
  }
  return 0;
}
