// What a thread that can still be woken waits for, in words: the lock and its owner, the child, the queue and who used
// it last. For people: no proof rests on it.
#pragma once

#include <cstdint>
#include <string>

#include "proc/thread_sample.hpp"
#include "watch/evidence.hpp"

namespace forksight::watch {

// "the mutex at 0x55d0c0, which thread 12 holds"; "" if no more is known than the call. Reads only.
std::string describe_target(std::int32_t pid, const proc::ThreadSample& thread);

}  // namespace forksight::watch
