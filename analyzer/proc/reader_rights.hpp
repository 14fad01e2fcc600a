// Limits what this process can change. A process that reads files and memory of other users calls these functions
// first. If a file makes the process run foreign code, that code can read and can answer, but it can change little.
#pragma once

namespace forksight::proc {

// True if this process runs as root and has the capabilities that give_up_user() needs, CAP_SYS_PTRACE and
// CAP_KILL. With these two, a process can still watch and end another process that has given up its user.
bool may_give_up_user();

// Changes the user of this process to one that no account has, and drops all groups and capabilities. If
// `examines_processes`, keeps CAP_SYS_PTRACE, to stop threads and read memory, and CAP_IPC_OWNER, to read the values of
// semaphores. Raises the limit of processes (RLIMIT_NPROC) as far as it may. Call it before threads exist. Returns
// false if the user namespace of this process has no such user, or if a filter refuses one of the calls. Then this
// process keeps its rights, but may have lost its groups.
bool give_up_user(bool examines_processes);

struct ReaderNeeds {
  // True if this process asks a debuginfod server. This needs the network, and a cache of files.
  bool is_server_asked = false;
};

// Installs a filter of system calls (seccomp) for this process, and for its later threads and children. Call it before
// threads exist. From then on, calls that do the following fail with EPERM:
// - start a program, open a file for writing, lock a file with flock(), or change names, owners, modes, times or
//   attributes of files;
// - open a socket other than one that asks the kernel about sockets (NETLINK_SOCK_DIAG);
// - write to the memory or the registers of another process, signal one, or change its limits or priority. One value of
//   one register may be written: it makes a stopped thread repeat its system call;
// - change the machine: mounts, modules, clocks, names, namespaces, keys, BPF programs;
// - use io_uring, openat2() or file handles, with which a program could do any of this unseen by the filter.
// The calls that reading needs stay allowed. docs/security.md says what foreign code could do with them:
// - ptrace() stops a thread, reads its registers, and lets it go on, also with a signal;
// - pidfd_getfd() copies a descriptor of another process, which may be open for writing;
// - setns() enters the network namespace of another process;
// - the NETLINK_SOCK_DIAG socket can also close connections of other processes, if the caller has CAP_NET_ADMIN.
// Returns false if the kernel or an outer filter refuses the filter. Then the process keeps its rights.
bool give_up_changing(const ReaderNeeds& needs);

}  // namespace forksight::proc
