// Takes from this process the right to change anything outside of itself. A process that reads files and memory of
// other users gives this right up first: if a file makes it run foreign code, that code can read, and can answer.
#pragma once

namespace forksight::proc {

struct ReaderNeeds {
  // A debuginfod server is asked. This needs the network, and a cache of files.
  bool is_server_asked = false;
};

// Installs a filter of system calls (seccomp) for all later threads and children of this process. Call it before
// threads exist. From then on the following calls fail with EPERM:
// - start a program, open a file for writing, change names, owners, modes, times or attributes of files;
// - open a socket other than one that asks the kernel about sockets (NETLINK_SOCK_DIAG);
// - write to the memory or the registers of another process, signal one, or change its limits or priority. One register
//   value is excepted, with which a repeated system call of a stopped thread goes on;
// - change the machine: mounts, modules, clocks, names, namespaces, keys, BPF programs;
// - io_uring, openat2() and file handles, which could do any of this unseen by the filter.
// Still allowed is what reading needs: ptrace() to stop a thread and to read its registers, copies of descriptors
// (pidfd_getfd), and the network namespace of another process (setns).
// Returns false if the kernel or an outer filter refuses the filter. Then the process keeps its rights.
bool give_up_changing(const ReaderNeeds& needs);

}  // namespace forksight::proc
