// Finds signals that reach a process without a sender, and calls that the handlers of such signals may end.
#pragma once

#include <cstdint>
#include <vector>

#include "proc/descriptor_tables.hpp"
#include "proc/thread_sample.hpp"
#include "watch/evidence.hpp"

namespace forksight::watch {

// Returns the signals of the POSIX timers of a process; 0 if /proc does not show them. Bit 0 is signal 1. `tid`: a
// living thread of the process.
std::uint64_t find_timer_signals(std::int32_t tid);

// Returns those signals of `caught` that the kernel may send by itself: at a set time, or because a descriptor became
// ready (O_ASYNC). If /proc does not show which signals these are, the result is `caught`. Bit 0 is signal 1. The
// result does not consider that the kernel sends SIGCHLD when a child ends. `tid`: a living thread of process `pid`.
std::uint64_t find_timed_signals(std::int32_t pid, std::int32_t tid, std::uint64_t caught,
                                 proc::DescriptorTables& tables);

// Returns the signals of POSIX timers that would end the process, because no handler runs for them. A timer that is not
// armed also counts, because /proc does not show whether a timer is armed.
std::uint64_t find_ending_signals(const ProcessEvidence& evidence);

// True if a living thread is in a call that a signal handler may end, for example a wait for a descriptor, a child or a
// file lock. Such a call fails with EINTR after the handler, unless the handler was installed with SA_RESTART. A wait
// for a futex (a mutex, the end of a thread) or in vfork() continues after a handler that returns.
bool is_open_to_handlers(const proc::Round& round, const std::vector<WaitFacts>& facts);

}  // namespace forksight::watch
