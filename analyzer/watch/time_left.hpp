// Finds how long a wait with a time limit may still last.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "proc/thread_sample.hpp"

namespace forksight::watch {

struct TimeLimit {
  bool has_one = false;
  std::optional<std::uint64_t> left_ms;  // 0: the wait may end at any moment; nullopt: not known
};

// `slept_ms`: the time since the thread last ran; nullopt: not known. If the limit counts from the beginning of the
// call, `slept_ms` is subtracted from the limit.
TimeLimit find_time_limit(const proc::ThreadSample& thread, std::optional<std::uint64_t> slept_ms);

// Reads the time until a timer expires from the fdinfo of its descriptor. nullopt: the text is not the fdinfo of a
// timer, or the timer is not armed.
std::optional<std::uint64_t> parse_timer_left(std::string_view fdinfo);

}  // namespace forksight::watch
