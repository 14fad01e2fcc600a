// Who may still post a semaphore for which the only thread of a child waits. A semaphore has no owner, and sem_post()
// is async-signal-safe. So a signal handler may post it.
#pragma once

#include <cstdint>

namespace forksight {

// True if a handler of the program may run while the calling thread waits, or if the kernel does not say which handlers
// there are. Handlers that end no wait do not count: handlers of faults, of signals that the thread blocks, of libc and
// of the shim, and CPython's handler of SIGINT. async-signal-safe, fork-child-safe.
bool may_handler_run();

// True if the call at `sp` (Site::sp) was probably made by CPython's module _queue. A SimpleQueue has a lock that is
// taken while the queue is empty. Any put() releases that lock, so no thread holds it. async-signal-safe,
// fork-child-safe.
bool is_call_of_simple_queue(std::uint64_t sp);

}  // namespace forksight
