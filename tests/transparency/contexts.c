/* The contexts in which the probes run. `program CONTEXT [PROBE]` runs all probes, or one, in this context. Without
 * arguments the program lists all contexts. */
#include "probe.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern const struct Probe* const __start_probes[];
extern const struct Probe* const __stop_probes[];

static unsigned g_context; /* set before any probe runs, even before the probes that run before main */
static const char* g_only;
static pid_t g_first;
static unsigned g_ran;

static void run_probes(void) {
  for (const struct Probe* const* at = __start_probes; at < __stop_probes; ++at) {
    if (((*at)->contexts & g_context) == 0 || (g_only != NULL && strcmp(g_only, (*at)->name) != 0)) continue;
    say("- %s", (*at)->name);
    (*at)->run();
    ++g_ran;
  }
}

/* Counts the entries of a folder, without "." and "..". */
static int count_entries(const char* path) {
  int count = 0;
  DIR* const folder = opendir(path);
  while (folder != NULL && readdir(folder) != NULL) ++count;
  if (folder != NULL) closedir(folder);
  return count - 2;
}

/* Waits until all other threads sleep or are gone. A thread that was joined remains in /proc for an instant. */
static void wait_for_the_ended(void) {
  DIR* const folder = opendir("/proc/self/task");
  const struct dirent* entry;
  while (folder != NULL && (entry = readdir(folder)) != NULL) {
    const pid_t thread = (pid_t)atoi(entry->d_name);
    if (thread > 0 && thread != gettid()) wait_until_asleep(thread);
  }
  if (folder != NULL) closedir(folder);
}

/* Prints what the shim must not change: threads, descriptors, signals. */
static void say_state(void) {
  wait_for_the_ended();
  say("threads %d, descriptors %d", count_entries("/proc/self/task"), count_entries("/proc/self/fd"));
  char line[128];
  FILE* const status = fopen("/proc/self/status", "re");
  while (status != NULL && fgets(line, sizeof line, status) != NULL) {
    if (strncmp(line, "Sig", 3) != 0 || line[3] == 'Q') continue;
    line[strcspn(line, "\n")] = '\0';
    say("%s", line);
  }
  if (status != NULL) fclose(status);
}

static void on_signal(int number) {
  (void)number;
  run_probes();
}

static void run_in_handler(void) {
  enum { kStack = 256 << 10 };
  const stack_t stack = {.ss_sp = malloc(kStack), .ss_size = kStack};
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
  if (stack.ss_sp == NULL || sigaltstack(&stack, NULL) != 0 || sigaction(SIGUSR2, &action, NULL) != 0) abort();
  raise(SIGUSR2);
}

static void* run_in_thread(void* unused) {
  run_probes();
  return unused;
}

static void run_in_small_thread(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN));
  if (pthread_create(&thread, &attributes, run_in_thread, NULL) != 0) abort();
  pthread_join(thread, NULL);
}

static pthread_mutex_t g_held = PTHREAD_MUTEX_INITIALIZER;
static atomic_int g_holds;
static int g_pipe[2];

static void* hold_until_closed(void* unused) {
  char byte;
  pthread_mutex_lock(&g_held);
  atomic_store(&g_holds, 1);
  if (read(g_pipe[0], &byte, 1) != 0) abort();
  pthread_mutex_unlock(&g_held);
  return unused;
}

static void run_with_thread(void (*body)(void)) {
  pthread_t thread;
  if (pipe(g_pipe) != 0 || pthread_create(&thread, NULL, hold_until_closed, NULL) != 0) abort();
  while (!atomic_load(&g_holds)) sched_yield();
  body();
  close(g_pipe[1]);
  pthread_join(thread, NULL);
  close(g_pipe[0]);
}

static void run_in_child(void) { in_child(run_probes); }
static void run_in_watched_child(void) { run_with_thread(run_in_child); }

static void on_key(void* unused) {
  (void)unused;
  run_probes();
}
static void* set_key(void* key) {
  pthread_setspecific(*(pthread_key_t*)key, "value");
  return NULL;
}
static void run_in_key_destructor(void) {
  pthread_key_t key;
  pthread_t thread;
  pthread_key_create(&key, on_key);
  if (pthread_create(&thread, NULL, set_key, &key) != 0) abort();
  pthread_join(thread, NULL);
}

static void* be_cancelled(void* unused) {
  pthread_cleanup_push(on_key, NULL);
  pthread_cancel(pthread_self());
  pthread_testcancel();
  pthread_cleanup_pop(0);
  return unused;
}
static void run_in_cleanup(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, be_cancelled, NULL) != 0) abort();
  pthread_join(thread, NULL);
}

static void run_with_threads(void) { run_with_thread(run_probes); }
static void run_nothing(void) {}

static const struct {
  const char* name;
  enum Context context;
  void (*from_main)(void);
} kContexts[] = {
    {"main", IN_MAIN, run_probes},
    {"main-of-many", IN_MAIN_OF_MANY, run_with_threads},
    {"small-thread", IN_SMALL_THREAD, run_in_small_thread},
    {"handler", IN_HANDLER, run_in_handler},
    {"child", IN_CHILD, run_in_child},
    {"watched-child", IN_WATCHED_CHILD, run_in_watched_child},
    {"before-main", BEFORE_MAIN, run_nothing},
    {"at-exit", AT_EXIT, run_nothing},
    {"destructor", IN_DESTRUCTOR, run_nothing},
    {"key-destructor", IN_KEY_DESTRUCTOR, run_in_key_destructor},
    {"cleanup", IN_CLEANUP, run_in_cleanup},
};
enum { kContextCount = sizeof kContexts / sizeof kContexts[0] };

/* The loader calls the functions in .preinit_array before the constructors of all libraries. It passes them the
 * arguments of the program. */
static void before_main(int argc, char** argv, char** environment) {
  (void)environment;
  g_first = getpid();
  g_only = argc > 2 ? argv[2] : NULL;
  for (unsigned i = 0; i < kContextCount && argc > 1; ++i) {
    if (strcmp(argv[1], kContexts[i].name) == 0) g_context = kContexts[i].context;
  }
  if (g_context == BEFORE_MAIN) run_probes();
}
__attribute__((used, section(".preinit_array"))) static void (*const preinit)(int, char**, char**) = before_main;

static void at_exit(void) {
  if (g_context == AT_EXIT && getpid() == g_first) run_probes();
}
__attribute__((destructor)) static void in_destructor(void) {
  if (g_context == IN_DESTRUCTOR && getpid() == g_first) run_probes();
  if (g_context != 0 && getpid() == g_first) say_state();
}

int main(int argc, char** argv) {
  if (argc < 2) {
    for (unsigned i = 0; i < kContextCount; ++i) printf("%s\n", kContexts[i].name);
    return 0;
  }
  if (g_context == 0) {
    fprintf(stderr, "%s: no context %s\n", argv[0], argv[1]);
    return 2;
  }
  atexit(at_exit);
  say("main");
  for (unsigned i = 0; i < kContextCount; ++i) {
    if (kContexts[i].context == g_context) kContexts[i].from_main();
  }
  say("main ends");
  return 7;
}
