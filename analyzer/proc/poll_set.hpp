// Finds the descriptors that a thread in poll(), select() or epoll_wait() waits for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "proc/thread_sample.hpp"

namespace forksight::proc {

// Returns the descriptors that the thread waits for. nullopt: the thread is in another call, or the descriptors cannot
// be read or are too many. For epoll_wait() also nullopt: one of the descriptors no longer refers to the file that the
// epoll instance watches.
std::optional<std::vector<std::int32_t>> read_poll_set(const ThreadSample& thread);

// True for epoll_wait() and its variants. Pure.
bool is_epoll_wait(const Syscall& call);

}  // namespace forksight::proc
