// How a wait for a timerfd is told from others.
#pragma once

namespace forksight::model {

// Wait::path of such a wait: what /proc/PID/fd links to. A timerfd has no name of its own.
inline constexpr const char* kTimerfdName = "anon_inode:[timerfd]";

}  // namespace forksight::model
