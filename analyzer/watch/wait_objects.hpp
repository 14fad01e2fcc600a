// Describes objects that a thread waits for by a number or name, and not by a descriptor: a FIFO that it opens, a
// semaphore of System V. Nothing here changes a process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/model.hpp"
#include "proc/thread_sample.hpp"

namespace forksight::watch {

// A call of open() for a FIFO. The call sleeps until another process opens the other end.
struct FifoOpen {
  std::string path;
  bool reads = false;        // the thread opens the FIFO for reading; otherwise for writing
  bool is_unlinked = false;  // the name no longer exists
};
std::optional<FifoOpen> find_fifo_open(const proc::ThreadSample& thread);

// True if the thread is in forksight's IPC namespace. Identifiers of System V objects are valid only within one IPC
// namespace.
bool shares_ipc(std::int32_t tid);

// Finds the first operation in the thread's semop() call that cannot be done now. nullopt: there is no such operation,
// or the semaphore set belongs to another namespace, no longer exists, or may not be read.
std::optional<model::SemaphoreWait> find_semaphore(const proc::ThreadSample& thread);

}  // namespace forksight::watch
