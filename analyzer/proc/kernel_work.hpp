// Tells what the kernel may do with objects of processes, although no process makes a system call at that time: it
// writes to an eventfd, or carries out the requests of an io_uring.
//  A process can hand an eventfd to the kernel, and then close its own descriptor. The kernel keeps the eventfd, and no
//  descriptor shows that. An io_uring keeps files in the same way.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>

#include "proc/descriptors.hpp"

namespace forksight::proc {

class DescriptorTables;

// True if the process has an io_uring: the kernel may read, write or close any file for the process. Also true if the
// process may not be examined.
bool may_use_ring(std::int32_t pid, DescriptorTables& tables);
// True if the process has an io_uring, asynchronous I/O, or a device: the kernel may write to an eventfd for the
// process. Also true if the process may not be examined. This calls stat() for each file that the process has open.
bool may_let_kernel_write_to_eventfd(std::int32_t pid, DescriptorTables& tables);

// True for the text of a link /proc/PID/fd/N of an io_uring. Pure.
bool is_ring_link(std::string_view link);
// True if the descriptor belongs to a device that may write to an eventfd.
bool is_writing_device(const Descriptor& one);

// The work that the text of /proc/PID/maps shows. An object stays open for as long as it is mapped, even without a
// descriptor.
struct KernelWork {
  bool has_ring = false;
  bool may_write_to_eventfd = false;
};
KernelWork work_of_mappings(std::string_view maps);  // pure

// True if a file without a path ("anon_inode:...") may write to an eventfd. False for the kinds of such files that are
// known to write to no eventfd, and for every file with a path. `link`: the text of the link /proc/PID/fd/N. Pure.
bool may_anonymous_file_write(std::string_view link);

// True if this machine has memory control groups of version 1, or if that is not known. By the file
// cgroup.event_control of such a group, every user may ask the kernel to write to an eventfd when something happens to
// the group. The kernel does not show which eventfds it writes to.
bool has_memory_groups_of_version_1();
// `cgroups`: the text of /proc/cgroups. Pure.
bool lists_memory_groups_of_version_1(std::string_view cgroups);
// `cgroup`: the text of /proc/PID/cgroup of any process. Pure.
bool is_in_memory_group_of_version_1(std::string_view cgroup);

// Returns the inodes of the pipes into which the kernel writes for an automounter. automount(8) gives the writing end of
// a pipe to the kernel (the option fd= of the file system autofs), and no descriptor shows this end. Knows the mounts of
// the own mount namespace.
std::set<std::uint64_t> find_autofs_pipes();
// `mounts`: the text of /proc/PID/mountinfo (proc(5)). Pure.
std::set<std::uint64_t> parse_autofs_pipes(std::string_view mounts);

}  // namespace forksight::proc
