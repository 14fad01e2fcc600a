// Describes in words which call a thread is in and what it waits for there: the lock and its owner, the child, the
// queue and its last user. For people: no proof uses this text.
#pragma once

#include <cstdint>
#include <string>

#include "files/reader.hpp"
#include "proc/thread_sample.hpp"
#include "watch/evidence.hpp"

namespace forksight::watch {

// "in read", "in a futex without a timeout", "stopped". Pure.
std::string describe_call(const proc::ThreadSample& thread);

// "the mutex at 0x55d0c0, which thread 12 holds"; "" if only the call is known. Only reads the process. `facts`: what
// was looked up about a futex.
std::string describe_target(const files::Reader& reader, std::int32_t pid, const proc::ThreadSample& thread,
                            const WaitFacts& facts);

}  // namespace forksight::watch
