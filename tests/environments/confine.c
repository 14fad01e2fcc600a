#include "confine.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kMostCalls = 160, kNobody = 65534 };

/* The system calls that glibc makes for a program that reads and writes files, maps memory, makes threads, forks,
 * executes programs, waits, and uses sockets. The list does not contain gettid, prctl and uname. */
static const int kPlainCalls[] = {
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_pwrite64,
    SYS_openat,
    SYS_open,
    SYS_close,
    SYS_fstat,
    SYS_stat,
    SYS_lstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_lseek,
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigsuspend,
    SYS_rt_sigtimedwait,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_ioctl,
    SYS_alarm,
    SYS_setitimer,
    SYS_fcntl,
    SYS_flock,
    SYS_access,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_pipe,
    SYS_pipe2,
    SYS_dup,
    SYS_dup2,
    SYS_dup3,
    SYS_select,
    SYS_pselect6,
    SYS_poll,
    SYS_ppoll,
    SYS_nanosleep,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_gettimeofday,
    SYS_getpid,
    SYS_getppid,
    SYS_getpgrp,
    SYS_getpgid,
    SYS_setpgid,
    SYS_setsid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getgroups,
    SYS_getresuid,
    SYS_getresgid,
    SYS_clone,
    SYS_clone3,
    SYS_vfork,
    SYS_fork,
    SYS_execve,
    SYS_exit,
    SYS_exit_group,
    SYS_wait4,
    SYS_waitid,
    SYS_futex,
    SYS_kill,
    SYS_tgkill,
    SYS_prlimit64,
    SYS_getrlimit,
    SYS_getrusage,
    SYS_sysinfo,
    SYS_times,
    SYS_umask,
    SYS_getrandom,
    SYS_arch_prctl,
    SYS_set_tid_address,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_getdents64,
    SYS_getcwd,
    SYS_chdir,
    SYS_readlink,
    SYS_statfs,
    SYS_fstatfs,
    SYS_unlink,
    SYS_ftruncate,
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept4,
    SYS_sendto,
    SYS_recvfrom,
    SYS_sendmsg,
    SYS_recvmsg,
    SYS_shutdown,
    SYS_getsockname,
    SYS_getpeername,
    SYS_setsockopt,
    SYS_getsockopt,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_wait,
    SYS_eventfd2,
};

static const char* install(struct sock_filter* steps, size_t count) {
  struct sock_fprog program = {(unsigned short)count, steps};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "PR_SET_NO_NEW_PRIVS was refused";
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) return "the kernel refused the filter";
  return NULL;
}

/* Installs a filter that returns the action `to_these` for each of `calls`, and `to_others` for all other calls. */
static const char* filter_calls(const int* calls, size_t count, unsigned to_these, unsigned to_others) {
  struct sock_filter steps[2 * kMostCalls + 8];
  size_t at = 0;
  steps[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
  steps[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
  steps[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  steps[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (size_t i = 0; i < count && i < kMostCalls; ++i) {
    steps[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
    steps[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, to_these);
  }
  steps[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, to_others);
  return install(steps, at);
}

static const char* refuse(int call, int error) {
  return filter_calls(&call, 1, SECCOMP_RET_ERRNO | (unsigned)error, SECCOMP_RET_ALLOW);
}

static const char* allow_plain_calls(unsigned to_others) {
  return filter_calls(kPlainCalls, sizeof kPlainCalls / sizeof *kPlainCalls, SECCOMP_RET_ALLOW, to_others);
}

/* The filter lets a program read its limits, because glibc does so before main(). */
static const char* no_new_limits(unsigned long unused, int* is_missing) {
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2]) + 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  (void)unused;
  (void)is_missing;
  return install(steps, sizeof steps / sizeof *steps);
}

static const char* limit(int resource, unsigned long mebibytes) {
  const struct rlimit both = {mebibytes << 20, mebibytes << 20};
  return setrlimit(resource, &both) == 0 ? NULL : "setrlimit() failed";
}

static const char* no_readv(unsigned long unused, int* is_missing) {
  (void)unused;
  (void)is_missing;
  return refuse(SYS_process_vm_readv, EPERM);
}

static const char* no_fallocate(unsigned long unused, int* is_missing) {
  (void)unused;
  (void)is_missing;
  return refuse(SYS_fallocate, EOPNOTSUPP);
}

static const char* allow_list(unsigned long unused, int* is_missing) {
  (void)unused;
  (void)is_missing;
  return allow_plain_calls(SECCOMP_RET_KILL_PROCESS);
}

static const char* refuse_list(unsigned long unused, int* is_missing) {
  (void)unused;
  (void)is_missing;
  return allow_plain_calls(SECCOMP_RET_ERRNO | EPERM);
}

static const char* limit_memory(unsigned long mebibytes, int* is_missing) {
  (void)is_missing;
  return limit(RLIMIT_AS, mebibytes);
}

/* The limit does not apply to a process with CAP_IPC_LOCK, so the process gives up this capability. If the process is
 * root, it also removes the capability from the bounding set. Otherwise an executed program would get the capability
 * back. */
static const char* limit_locked(unsigned long mebibytes, int* is_missing) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct sets[2];
  (void)is_missing;
  if (geteuid() == 0 && prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0) != 0) return "CAP_IPC_LOCK cannot be given up";
  if (syscall(SYS_capget, &header, sets) != 0) return "capget() failed";
  sets[0].effective &= ~(1U << CAP_IPC_LOCK);
  sets[0].permitted &= ~(1U << CAP_IPC_LOCK);
  sets[0].inheritable &= ~(1U << CAP_IPC_LOCK);
  if (syscall(SYS_capset, &header, sets) != 0) return "capset() failed";
  return limit(RLIMIT_MEMLOCK, mebibytes);
}

static const char* become_nobody(unsigned long unused, int* is_missing) {
  (void)unused;
  if (geteuid() != 0) {
    *is_missing = 1;
    return "only root can become another user";
  }
  if (setgroups(0, NULL) != 0 || setgid(kNobody) != 0 || setuid(kNobody) != 0) return "setuid() failed";
  return NULL;
}

static const struct Environment {
  const char* name;
  const char* (*apply)(unsigned long mebibytes, int* is_missing);
  unsigned long mebibytes; /* the default size; 0: the environment takes no size */
  const char* what;
} kEnvironments[] = {
    {"no-readv", no_readv, 0, "a seccomp filter makes process_vm_readv fail with EPERM"},
    {"no-fallocate", no_fallocate, 0, "a seccomp filter makes fallocate fail with EOPNOTSUPP"},
    {"allow-list", allow_list, 0,
     "a seccomp filter allows the system calls that glibc makes for ordinary programs, and kills the process at any "
     "other"},
    {"no-limits", no_new_limits, 0, "a seccomp filter kills the process if it calls prlimit64 to set a limit"},
    {"refuse-list", refuse_list, 0,
     "a seccomp filter allows the same system calls as allow-list, and makes any other fail with EPERM"},
    {"vm-limit", limit_memory, 64, "the limit for the address space (RLIMIT_AS) is this number of MiB"},
    {"mlock", limit_locked, 8,
     "the limit for locked memory (RLIMIT_MEMLOCK) is this number of MiB; for programs that call mlockall"},
    {"setuid", become_nobody, 0, "the program runs as the user nobody"},
};
enum { kEnvironmentCount = sizeof kEnvironments / sizeof *kEnvironments };

const char* confine(const char* environment, int* is_missing) {
  const size_t length = strcspn(environment, "=");
  *is_missing = 0;
  for (int i = 0; i < kEnvironmentCount; ++i) {
    const struct Environment* const one = &kEnvironments[i];
    if (strlen(one->name) != length || strncmp(one->name, environment, length) != 0) continue;
    if (environment[length] == '\0') return one->apply(one->mebibytes, is_missing);
    char* end = NULL;
    const unsigned long mebibytes = strtoul(environment + length + 1, &end, 10);
    if (one->mebibytes == 0) return "this environment takes no size";
    if (mebibytes == 0 || *end != '\0') return "the size is not a number of MiB above 0";
    return one->apply(mebibytes, is_missing);
  }
  return "no such environment; --list names them";
}

void list_environments(void) {
  for (int i = 0; i < kEnvironmentCount; ++i) {
    printf("%-14s %s", kEnvironments[i].name, kEnvironments[i].what);
    if (kEnvironments[i].mebibytes != 0) printf(" (%s=%lu)", kEnvironments[i].name, kEnvironments[i].mebibytes);
    printf("\n");
  }
}
