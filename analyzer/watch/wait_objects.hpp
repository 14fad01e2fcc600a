// Objects that a thread waits for by their number or name instead of by a descriptor: a FIFO that it opens, a semaphore
// of System V. Reads only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/model.hpp"
#include "proc/thread_sample.hpp"

namespace forksight::watch {

// open() sleeps at a FIFO only, until somebody opens the other end.
struct FifoOpen {
  std::string path;
  bool reads = false;        // it opens it for reading
  bool is_unlinked = false;  // nothing has that name any more
};
std::optional<FifoOpen> find_fifo_open(const proc::ThreadSample& thread);

// System V's numbers mean something within one namespace only: is the thread in ours?
bool shares_ipc(std::int32_t tid);

// The first of the operations of semop() that cannot be done now. nullopt: its set belongs to another namespace, or is
// gone, or may not be read.
std::optional<model::SemaphoreWait> find_semaphore(const proc::ThreadSample& thread);

}  // namespace forksight::watch
