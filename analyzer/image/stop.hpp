// Reads all registers of threads of a live process. Stops one thread at a time, for some tens of microseconds, and then
// lets it go on.
#pragma once

#include <cstdint>
#include <span>

#include "image/image.hpp"

namespace forksight::image {

// True if the system call continues unchanged after its thread was stopped. The list in stop.cpp has only calls that
// tests/image/stop_test.cpp tries, and calls that wait in the same kernel code as these. Other calls, such as
// epoll_wait, semop and sigtimedwait, fail with EINTR if their thread is stopped.
bool may_be_stopped(const proc::Syscall& call);

// True if a stop changes nothing for the thread, according to its last sample. False for a thread that is already
// stopped or traced, or that waits for the kernel (state D).
bool may_be_stopped(const Thread& thread);

// Fills in `registers` and `fs_base` of the threads `tids` of `image`. Does nothing for a core. If a thread has moved
// since `image` was read, also reads `stack` while the thread is stopped, and corrects or removes `call`. Does not stop
// a thread that may not be stopped, or whose futex wait the stop would end. If a thread does not stop within 200 ms,
// its entry in `image` stays as it is. Adds sentences about refused and late threads to `image.limits`.
void stop_and_read_registers(Image& image, std::span<const std::int32_t> tids);

}  // namespace forksight::image
