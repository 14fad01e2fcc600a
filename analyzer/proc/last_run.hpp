// How long ago a thread ran last, asked of the scheduler: "since when" of a process that nobody watched until now.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace forksight::proc {

// The field se.exec_start of /proc/PID/task/TID/sched, in ms of the scheduler's clock: when the thread last ran
// (CONFIG_SCHED_DEBUG; kernel/sched/debug.c).
std::optional<double> parse_last_run(std::string_view text);

// Since the last of its threads ran; nullopt where the kernel does not tell.
std::optional<std::chrono::milliseconds> resting_time(std::int32_t pid);
// The same of one thread.
std::optional<std::chrono::milliseconds> resting_time(std::int32_t pid, std::int32_t tid);

}  // namespace forksight::proc
