// What the kernel may do with objects of processes, although no process calls it at that time: it writes to an eventfd,
// or carries out the requests of an io_uring.
//  A process can hand an eventfd to the kernel, and then close its own descriptor. The kernel keeps the eventfd, and no
//  descriptor shows that. An io_uring keeps files in the same way.
#pragma once

#include <cstdint>
#include <string_view>

namespace forksight::proc {

struct KernelWork {
  bool has_ring = false;              // an io_uring: it may read, write or close any file, and write to an eventfd
  bool may_write_to_eventfd = false;  // an io_uring, asynchronous I/O, or a device
};
// What the kernel may do for this process. If the process may not be examined, everything.
KernelWork find_kernel_work(std::int32_t pid);
// The part of it that the text of /proc/PID/maps shows. An object stays open for as long as it is mapped, even without
// a descriptor. Pure.
KernelWork work_of_mappings(std::string_view maps);

// True if a file that is not of the file system may write to an eventfd. `link`: the text of the link /proc/PID/fd/N.
// False for files that forksight knows not to write. Pure.
bool may_anonymous_file_write(std::string_view link);

// True if this machine has memory control groups of version 1, or if that is not known. By the file
// cgroup.event_control of such a group, every user may ask the kernel to write to an eventfd when something happens to
// the group. The kernel does not show which eventfds it writes to.
bool has_memory_groups_of_version_1();
// `cgroups`: the text of /proc/cgroups. Pure.
bool lists_memory_groups_of_version_1(std::string_view cgroups);
// `cgroup`: the text of /proc/PID/cgroup of any process. Pure.
bool is_in_memory_group_of_version_1(std::string_view cgroup);

}  // namespace forksight::proc
