// Timers of a process that may end a wait of its own: their signals have handlers.
#pragma once

#include <cstdint>
#include <vector>

#include "proc/thread_sample.hpp"
#include "watch/evidence.hpp"

namespace forksight::watch {

// Does a thread wait for a descriptor, a child or a lock of a file, and may the process have a timer whose signal has a
// handler? It ends such a call: its caller sees EINTR and goes on. A wait for a mutex or a thread goes on after it.
bool may_timer_end(std::int32_t pid, const proc::Round& round, const std::vector<WaitFacts>& facts);

}  // namespace forksight::watch
