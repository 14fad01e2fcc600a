// What a thread waits for that sleeps in one of forksight's own shared-memory queues (ipc/). Such a wait is never for
// good: it ends after a slice and looks for the dead. But who holds what is worth a line.
#pragma once

#include <cstdint>
#include <string>

#include "proc/mappings.hpp"

namespace forksight::watch {

// "a free buffer of queue 3f2a...: 4 held by process 812 (alive, state T) for 41 s"; empty: the word is of no queue, or
// the queue may not be read.
std::string describe_queue_wait(std::int32_t pid, std::int32_t tid, std::uint64_t word);

}  // namespace forksight::watch
