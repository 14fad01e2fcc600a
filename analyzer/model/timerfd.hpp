// Recognises a wait for a timerfd.
#pragma once

namespace forksight::model {

// The Wait::path of a wait for a timerfd. The link of the descriptor in /proc/PID/fd has this text, which is the same
// for all timerfds.
inline constexpr const char* kTimerfdName = "anon_inode:[timerfd]";

}  // namespace forksight::model
