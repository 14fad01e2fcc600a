/* Calls that give up rights. The probes ask for ids that the process already has, or for changes that the kernel
 * refuses.
 */
#include "probe.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

PROBE(users) {
  SHOW(setuid(geteuid()));
  SHOW(seteuid(geteuid()));
  SHOW(setreuid((uid_t)-1, geteuid()));
  SHOW(setresuid((uid_t)-1, (uid_t)-1, geteuid()));
  SHOW(setresuid((uid_t)-1, (uid_t)-1, (uid_t)-1));
}

PROBE(no_such_root) { SHOW(chroot("/no/such/folder")); }

PROBE(other_options) {
  char name[16] = "";
  SHOW(prctl(PR_SET_NAME, "probe"));
  SHOW(prctl(PR_GET_NAME, name));
  say("%s", name);
  SHOW(prctl(PR_GET_SECCOMP));
  SHOW(prctl(-1, 0, 0, 0, 0));
}

PROBE(refused_filters) {
  struct sock_fprog none = {0, NULL};
  SHOW(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0));
  SHOW(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &none, 0, 0));
  SHOW(prctl(PR_SET_SECCOMP, 99, NULL, 0, 0));
  SHOW(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &none));
  SHOW(syscall(SYS_seccomp, 99, 0, NULL));
  SHOW(syscall(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0));
}

/* A filter that makes one system call fail, and allows all others. */
static void filter_one_call(void) {
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpriority, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  SHOW(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  SHOW(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0));
  SHOW(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
  SHOW(syscall(SYS_getpriority, 0, 0));
  SHOW(pthread_mutex_lock(&mutex));
  SHOW(pthread_mutex_unlock(&mutex));
}

/* In this mode the kernel ends the process at any system call except four. */
static void strict_mode(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  SHOW(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0));
  SHOW(pthread_mutex_lock(&mutex));
  SHOW(pthread_mutex_unlock(&mutex));
  syscall(SYS_exit, 0);
}

static void do_nothing(void) {}

/* If the process may not read the time-stamp counter, it cannot read the clock through the vdso either. */
static void without_counter(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  SHOW(prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0));
  SHOW(pthread_mutex_lock(&mutex));
  SHOW(pthread_mutex_unlock(&mutex));
  in_child(do_nothing);
}

static void without_counter_by_syscall(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  SHOW(syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0));
  SHOW(pthread_mutex_lock(&mutex));
  SHOW(pthread_mutex_unlock(&mutex));
  in_child(do_nothing);
}

PROBE_IN(filters, ANYWHERE & ~(IN_HANDLER | IN_KEY_DESTRUCTOR | IN_CLEANUP)) {
  in_child(filter_one_call);
  in_child(strict_mode);
  in_child(without_counter);
  in_child(without_counter_by_syscall);
}
