// A fork with two sets of atfork handlers: one of libpool.so and one of the program. Another thread holds a mutex.
#pragma once

#include <optional>

#include "forksight/trace/handlers.hpp"
#include "support/scenes.hpp"

namespace forksight::test {

class HandlerTrace {
 public:
  HandlerTrace();

  // Writes the record of the fork and begins the child. The child writes the records that follow.
  void make_child();
  // Writes the record of a run of the handlers of one process. `running` is the index, in order of registration, of the
  // handler that runs, or nullopt if all handlers have returned.
  std::uint64_t run(trace::HandlerPhase phase, std::optional<std::uint32_t> running);
  std::uint64_t wait(std::uint64_t run, trace::HandlerWaitKind kind, std::uint64_t owner, std::uint32_t done = 0);
  // Records that a prepare handler which ran before the waiting handler has taken a lock.
  void hold(std::uint64_t wait, std::uint64_t lock);
  // The child touches the lock that the worker held.
  void touch();

  TraceBuilder trace;
  std::uint64_t forking = 0;
  std::uint64_t worker = 0;
  std::uint64_t handlers = 0;
  std::uint64_t fork = 0;

 private:
  std::uint64_t held_ = 0;
};

// Returns a trace with all records about handlers: times, a thread that ended while the prepare handlers ran, a handler
// that hangs in the parent, and a handler that hangs in the child.
TraceBuilder whole_handler_trace();

}  // namespace forksight::test
