// Reads all registers of threads of a live process: each thread is stopped for some tens of microseconds, one at a
// time, and then goes on.
#pragma once

#include <cstdint>
#include <span>

#include "image/image.hpp"

namespace forksight::image {

// True if the system call goes on unchanged after a stop of its thread. Only for calls that were tried, or that wait by
// the same kernel code (tests/image/stop_test.cpp): epoll_wait, semop and sigtimedwait, among others, fail with EINTR
// instead.
bool may_be_stopped(const proc::Syscall& call);

// The same for a thread, judged by its last sample. False for a thread that is already stopped or traced, or waits for
// the kernel (state D).
bool may_be_stopped(const Thread& thread);

// Fills in `registers` and `fs_base` of these threads of `image`, a live one; of those that were running also `stack`,
// which is of the same moment. If a thread is in another call than `call` says, `call` is removed or corrected.
// Stops nothing that may not be stopped. What does not stop within 200 ms is left alone. Limits say what was refused.
void stop_and_read_registers(Image& image, std::span<const std::int32_t> tids);

}  // namespace forksight::image
