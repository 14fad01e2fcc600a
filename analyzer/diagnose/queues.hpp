// forksight's own shared-memory queues (ipc/) in sentences: the list of one with a feeder thread.
#pragma once

#include <optional>
#include <string>

#include "diagnose/evidence.hpp"

namespace forksight::queues {

// The feeder thread that a fork left behind. ipc/ names such a thread after its queue.
struct Feeder {
  const model::Thread* thread;
  std::string queue;  // the first eight digits of its id
};

// The child of a fork came to this lock inside of send_copy() or close_producer() of a queue whose feeder was left
// behind. nullopt: it is another lock, or the queue had no feeder yet, or which queue it is cannot be told.
std::optional<Feeder> find_feeder(const Evidence& evidence, const model::Touch& touch);

}  // namespace forksight::queues
