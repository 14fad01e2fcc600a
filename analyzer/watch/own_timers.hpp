// Timers of a process that may end a wait of its own: their signals have handlers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "watch/evidence.hpp"

namespace forksight::watch {

// /proc/PID/timers: the signals that POSIX timers send; bit 0 is signal 1.
std::uint64_t parse_timer_signals(std::string_view text);

// Does a thread wait for a descriptor, a child or a lock of a file, and may the process have a timer whose signal has a
// handler? It ends such a call: its caller sees EINTR and goes on. A wait for a mutex or a thread goes on after it.
bool may_timer_end(std::int32_t pid, const Round& round, const std::vector<WaitFacts>& facts);

}  // namespace forksight::watch
