// How long a wait with a time limit may still last.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "proc/thread_sample.hpp"

namespace forksight::watch {

struct TimeLimit {
  bool has_one = false;
  std::optional<std::uint64_t> left_ms;  // 0: any moment; nullopt: not known
};

// `slept_ms`: since the thread ran last, by which a limit that counts from the call is cut; nullopt: not known.
TimeLimit find_time_limit(const proc::ThreadSample& thread, std::optional<std::uint64_t> slept_ms);

// What the fdinfo of a timer's descriptor says; nullopt: it is no such text, or the timer is not armed.
std::optional<std::uint64_t> parse_timer_left(std::string_view fdinfo);

}  // namespace forksight::watch
