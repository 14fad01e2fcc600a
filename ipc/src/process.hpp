// Facts about processes, from /proc, and clocks.
#pragma once

#include <cstdint>
#include <string>

namespace forksight::ipc::detail {

// The state in field 3 of /proc/PID/stat (proc(5)): R, S, D, T, t, Z, X; 0: there is no such process, or /proc is not
// usable.
char state_of(std::uint32_t pid);
// True if /proc shows no process of this pid, or only a zombie. That is no proof of an end: /proc may hide the
// processes of other users, and a process looks like a zombie if only its main thread has ended. False if /proc is not
// usable. `pid` is of the pid namespace of this process.
bool seems_to_have_ended(std::uint32_t pid);
// The inode of /proc/self/ns/pid; 0: not known, because /proc cannot be read.
std::uint64_t own_pid_namespace();
// The name of the calling process, at most 15 bytes.
std::string own_name();
std::uint64_t monotonic_ns();
// The time that monotonic_ns() returns, exact to a tick of the kernel (1 to 10 ms). The call takes only a few
// nanoseconds.
std::uint64_t coarse_ns();
constexpr std::uint64_t kTickNs = 10'000'000;  // the longest tick
constexpr std::uint64_t kNever = ~std::uint64_t{0};
// The number of CPUs that the calling thread may run on.
unsigned usable_cpus();

}  // namespace forksight::ipc::detail
