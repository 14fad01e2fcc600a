// All registers of threads of a live process: each is stopped for some tens of microseconds, one at a time, and goes
// on.
#pragma once

#include <cstdint>
#include <span>

#include "image/image.hpp"

namespace forksight::image {

// Does the system call go on as if nothing had been, once a thread that was stopped in it goes on? True only of calls
// that were tried, or that wait by the same code of the kernel (tests/image/stop_test.cpp): epoll_wait, semop and
// sigtimedwait among others fail with EINTR instead.
bool may_be_stopped(const proc::Syscall& call);

// The same of a thread, by what was last seen of it. Not of one that is stopped or traced already, or waits for the
// kernel (state D).
bool may_be_stopped(const Thread& thread);

// Fills in `registers` and `fs_base` of these threads of `image`, a live one; of those that were running also `stack`,
// which is of the same moment. A thread that was found elsewhere than `call` says loses it, or gets what it is in.
// Stops nothing that may not be stopped. What does not stop within 200 ms is left alone. Limits say what was refused.
void stop_and_read_registers(Image& image, std::span<const std::int32_t> tids);

}  // namespace forksight::image
