// Finds the lost feeder thread of a shared-memory queue. Such queues are part of forksight itself (ipc/).
#pragma once

#include <optional>
#include <string>

#include "diagnose/evidence.hpp"

namespace forksight::queues {

// A feeder thread that a fork left behind. A feeder sends the messages of one queue. ipc/ names the feeder after its
// queue.
struct Feeder {
  const model::Thread* thread;
  std::string queue;  // the first eight digits of the queue's id
};

// Returns the lost feeder of a queue, if the child touched this lock inside of send_copy() or close_producer().
// nullopt: it is another lock, the queue had no feeder yet, or it is not known which queue it is.
std::optional<Feeder> find_feeder(const Evidence& evidence, const model::Touch& touch);

}  // namespace forksight::queues
