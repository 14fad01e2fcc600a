// Tells how long ago a thread last ran, from the scheduler's records. By these records, forksight knows how long a
// process has been hanging, even if forksight did not watch the process.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace forksight::proc {

// Returns the field se.exec_start of /proc/PID/task/TID/sched: when the thread last ran, in ms of the scheduler's clock
// (CONFIG_SCHED_DEBUG; kernel/sched/debug.c).
std::optional<double> parse_last_run(std::string_view text);

// Returns for how long no thread of the process has run; nullopt if the kernel does not show this.
std::optional<std::chrono::milliseconds> idle_time(std::int32_t pid);
// Returns for how long one thread has not run; nullopt if the kernel does not show this.
std::optional<std::chrono::milliseconds> idle_time(std::int32_t pid, std::int32_t tid);

}  // namespace forksight::proc
