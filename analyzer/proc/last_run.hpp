// How long ago a thread last ran, from the scheduler's records. So forksight can say since when a process hangs that it
// did not watch.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace forksight::proc {

// The field se.exec_start of /proc/PID/task/TID/sched: when the thread last ran, in ms of the scheduler's clock
// (CONFIG_SCHED_DEBUG; kernel/sched/debug.c).
std::optional<double> parse_last_run(std::string_view text);

// The time since the last of its threads ran; nullopt if the kernel does not show it.
std::optional<std::chrono::milliseconds> resting_time(std::int32_t pid);
// The same for one thread.
std::optional<std::chrono::milliseconds> resting_time(std::int32_t pid, std::int32_t tid);

}  // namespace forksight::proc
