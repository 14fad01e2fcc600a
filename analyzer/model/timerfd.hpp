// How to recognise a wait for a timerfd.
#pragma once

namespace forksight::model {

// Wait::path of a wait for a timerfd: the target of the link in /proc/PID/fd. A timerfd has no name of its own.
inline constexpr const char* kTimerfdName = "anon_inode:[timerfd]";

}  // namespace forksight::model
