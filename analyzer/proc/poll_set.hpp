// Finds the descriptors that a thread in poll(), select() or epoll_wait() waits for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "proc/thread_sample.hpp"

namespace forksight::proc {

// nullopt: they cannot be read, or one of them no longer refers to the awaited file.
std::optional<std::vector<std::int32_t>> read_poll_set(const ThreadSample& thread);

}  // namespace forksight::proc
