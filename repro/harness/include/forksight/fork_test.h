/* Tests that forked children can use a library that their parent has used before. Write one function that uses the
 * library. This header makes the test program from it.
 *
 *   #include <forksight/fork_test.h>
 *   static int use(void) { return my_dot(x, y, 1000) == 1000.0 ? 0 : 1; }    0: it worked; else: it failed
 *   FORKSIGHT_FORK_TEST(use)
 *
 *   $ forksight suite check -- ./my_fork_test     runs each scene below under forksight, and prints the findings
 *
 * In CMake, forksight_add_fork_test(my_fork_test) makes a test of each scene. The program runs without forksight,
 * too: FORKSIGHT_FORK_TEST=SCENE ./my_fork_test ends with status 0 if all children could use the library, with 1 if
 * one could not, and with 3 if the parent failed. If a child hangs, the program hangs. The function is called many
 * times, in the parent and in children, by one thread of a process at a time. This header is C99 and C++, for POSIX,
 * GCC and Clang. Link with -pthread.
 */
#ifndef FORKSIGHT_FORK_TEST_H
#define FORKSIGHT_FORK_TEST_H

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#if !defined(_POSIX_C_SOURCE) || _POSIX_C_SOURCE < 200112L
#error "fork_test.h needs POSIX: compile with -std=gnu99 (or later), or with -D_POSIX_C_SOURCE=200809L"
#endif

/* Each scene: name, function that runs it, description. In each scene the parent uses the library first. */
#define FORKSIGHT_FORK_TEST_SCENES_(SCENE)                                                                            \
  SCENE("main", forksight_main_, "the thread that used the library forks, and the child uses the library")            \
  SCENE("child-thread", forksight_child_thread_, "as in main, but the child uses the library in a new thread")        \
  SCENE("thread", forksight_thread_, "a thread that is not the first one uses the library and forks")                 \
  SCENE("idle-thread", forksight_idle_thread_, "another thread has used the library, and waits during the fork")      \
  SCENE("busy-thread", forksight_busy_thread_, "another thread uses the library without a pause during 50 forks")     \
  SCENE("again", forksight_again_, "two children use the library one after the other, and the parent in between")     \
  SCENE("grandchild", forksight_grandchild_, "the child uses the library and forks, and the grandchild uses it, too") \
  SCENE("exit", forksight_exit_, "the child does not use the library, and ends by exit()")                            \
  SCENE("exec", forksight_exec_, "the child executes this program anew, and the new program uses the library")

enum { FORKSIGHT_WORKED_ = 0, FORKSIGHT_CHILD_FAILED_ = 1, FORKSIGHT_NO_SCENE_ = 2, FORKSIGHT_PARENT_FAILED_ = 3 };

static int (*forksight_use_)(void);
static volatile int forksight_is_over_;

static void forksight_must_(int good, const char* what) {
  if (good) return;
  perror(what);
  _exit(FORKSIGHT_PARENT_FAILED_);
}

static void forksight_use_before_fork_(void) {
  const int failed = forksight_use_();
  if (failed == 0) return;
  fprintf(stderr, "fork test: the function failed before any fork: it returned %d\n", failed);
  _exit(FORKSIGHT_PARENT_FAILED_);
}

static void forksight_use_in_child_(void) {
  const int failed = forksight_use_();
  if (failed == 0) return;
  fprintf(stderr, "fork test: the function failed in a forked child: it returned %d\n", failed);
  _exit(FORKSIGHT_CHILD_FAILED_);
}

/* Without fflush(), parent and child would both write the buffered output. */
static pid_t forksight_fork_(void) {
  pid_t child;
  fflush(stdout);
  child = fork();
  forksight_must_(child >= 0, "fork");
  return child;
}

static int forksight_end_of_(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) forksight_must_(errno == EINTR, "waitpid");
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  fprintf(stderr, "fork test: a forked child was killed by signal %d (%s)\n", WTERMSIG(status),
          strsignal(WTERMSIG(status)));
  return FORKSIGHT_CHILD_FAILED_;
}

static int forksight_one_child_(void) {
  const pid_t child = forksight_fork_();
  if (child == 0) {
    forksight_use_in_child_();
    _exit(FORKSIGHT_WORKED_);
  }
  return forksight_end_of_(child);
}

static int forksight_main_(void) {
  forksight_use_before_fork_();
  return forksight_one_child_();
}

static void forksight_run_thread_(void* (*start)(void*), void* argument) {
  pthread_t thread;
  forksight_must_((errno = pthread_create(&thread, NULL, start, argument)) == 0, "pthread_create");
  forksight_must_((errno = pthread_join(thread, NULL)) == 0, "pthread_join");
}

static void* forksight_child_user_(void* unused) {
  forksight_use_in_child_();
  return unused;
}

static int forksight_child_thread_(void) {
  pid_t child;
  forksight_use_before_fork_();
  child = forksight_fork_();
  if (child == 0) {
    forksight_run_thread_(forksight_child_user_, NULL);
    _exit(FORKSIGHT_WORKED_);
  }
  return forksight_end_of_(child);
}

static void* forksight_forking_thread_(void* outcome) {
  *(int*)outcome = forksight_main_();
  return NULL;
}

static int forksight_thread_(void) {
  int outcome = FORKSIGHT_PARENT_FAILED_;
  forksight_run_thread_(forksight_forking_thread_, &outcome);
  return outcome;
}

/* The other thread writes to the pipe `told` when it has used the library. It ends when the pipe `end` is closed. */
struct forksight_other_ {
  int told[2], end[2], is_busy;
};

static void* forksight_other_main_(void* argument) {
  struct forksight_other_* const other = (struct forksight_other_*)argument;
  char byte = 0;
  forksight_use_before_fork_();
  forksight_must_(write(other->told[1], &byte, 1) == 1, "write");
  while (other->is_busy && !forksight_is_over_) forksight_use_before_fork_();
  while (read(other->end[0], &byte, 1) < 0) forksight_must_(errno == EINTR, "read");
  return NULL;
}

static int forksight_beside_thread_(int is_busy, int forks) {
  struct forksight_other_ other;
  pthread_t thread;
  char byte = 0;
  int outcome = FORKSIGHT_WORKED_;
  other.is_busy = is_busy;
  forksight_must_(pipe(other.told) == 0 && pipe(other.end) == 0, "pipe");
  forksight_must_((errno = pthread_create(&thread, NULL, forksight_other_main_, &other)) == 0, "pthread_create");
  while (read(other.told[0], &byte, 1) < 0) forksight_must_(errno == EINTR, "read");
  while (forks-- > 0 && outcome == FORKSIGHT_WORKED_) outcome = forksight_one_child_();
  forksight_is_over_ = 1;
  close(other.end[1]);
  forksight_must_((errno = pthread_join(thread, NULL)) == 0, "pthread_join");
  close(other.end[0]);
  close(other.told[0]);
  close(other.told[1]);
  return outcome;
}

static int forksight_idle_thread_(void) { return forksight_beside_thread_(0, 1); }
static int forksight_busy_thread_(void) { return forksight_beside_thread_(1, 50); }

static int forksight_again_(void) {
  const int outcome = forksight_main_();
  return outcome != FORKSIGHT_WORKED_ ? outcome : forksight_main_();
}

static int forksight_grandchild_(void) {
  pid_t child;
  forksight_use_before_fork_();
  child = forksight_fork_();
  if (child == 0) {
    forksight_use_in_child_();
    _exit(forksight_one_child_());
  }
  return forksight_end_of_(child);
}

static int forksight_exit_(void) {
  pid_t child;
  forksight_use_before_fork_();
  child = forksight_fork_();
  if (child == 0) exit(FORKSIGHT_WORKED_);
  return forksight_end_of_(child);
}

static int forksight_exec_(void) {
  char program[] = "/proc/self/exe";
  char* argv[] = {program, NULL};
  pid_t child;
  forksight_use_before_fork_();
  forksight_must_(setenv("FORKSIGHT_FORK_TEST", "once", 1) == 0, "setenv");
  child = forksight_fork_();
  if (child == 0) {
    execv(program, argv);
    forksight_must_(0, "execv");
  }
  return forksight_end_of_(child);
}

/* Runs in the program that the child of the scene `exec` executes. */
static int forksight_once_(void) {
  forksight_use_in_child_();
  return FORKSIGHT_WORKED_;
}

static const struct forksight_scene_ {
  const char* name;
  int (*play)(void);
  const char* what;
} forksight_scenes_[] = {
#define FORKSIGHT_SCENE_(name, play, what) {name, play, what},
    FORKSIGHT_FORK_TEST_SCENES_(FORKSIGHT_SCENE_)
#undef FORKSIGHT_SCENE_
};

/* Runs the test, and returns the exit status of main(). FORKSIGHT_FORK_TEST=list prints the scenes in a form
 * that programs can parse. */
static int forksight_fork_test_(int (*use)(void), const char* program) {
  const char* const wanted = getenv("FORKSIGHT_FORK_TEST");
  const size_t count = sizeof forksight_scenes_ / sizeof *forksight_scenes_;
  size_t i;
  forksight_use_ = use;
  if (wanted != NULL && strcmp(wanted, "once") == 0) return forksight_once_();
  if (wanted != NULL && strcmp(wanted, "list") == 0) {
    puts("forksight-fork-test 1");
    for (i = 0; i < count; ++i) printf("%s\t%s\n", forksight_scenes_[i].name, forksight_scenes_[i].what);
    return FORKSIGHT_WORKED_;
  }
  for (i = 0; wanted != NULL && i < count; ++i) {
    if (strcmp(wanted, forksight_scenes_[i].name) == 0) return forksight_scenes_[i].play();
  }
  if (wanted != NULL) fprintf(stderr, "%s: no scene %s\n", program, wanted);
  fprintf(stderr,
          "This is a fork test. To run all scenes: forksight suite check -- %s. To run one scene, set "
          "FORKSIGHT_FORK_TEST=SCENE. The scenes:\n",
          program);
  for (i = 0; i < count; ++i) fprintf(stderr, "  %-14s%s\n", forksight_scenes_[i].name, forksight_scenes_[i].what);
  return FORKSIGHT_NO_SCENE_;
}

#define FORKSIGHT_FORK_TEST(use)                 \
  int main(int argc, char** argv) {              \
    (void)argc;                                  \
    return forksight_fork_test_((use), argv[0]); \
  }

#endif
