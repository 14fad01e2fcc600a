// Describes in words which call a thread is in, and what it waits for in that call: a lock and its owner, a child, a
// queue and its last user. The text is for people: no proof uses it.
#pragma once

#include <cstdint>
#include <string>

#include "files/reader.hpp"
#include "proc/descriptor_tables.hpp"
#include "proc/thread_sample.hpp"
#include "watch/evidence.hpp"

namespace forksight::watch {

// Returns words such as "in read", "in a futex without a timeout" or "stopped". Pure.
std::string describe_call(const proc::ThreadSample& thread);

// Returns words such as "the mutex at 0x55d0c0, which thread 12 holds"; "" if only the call is known. Only reads the
// process. `facts`: what was looked up about a futex.
std::string describe_target(const files::Reader& reader, proc::DescriptorTables& tables, std::int32_t pid,
                            const proc::ThreadSample& thread, const WaitFacts& facts);

}  // namespace forksight::watch
