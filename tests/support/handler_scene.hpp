// A fork with two sets of atfork handlers, of libpool.so and of the program; another thread holds a mutex.
#pragma once

#include <optional>

#include "forksight/trace/handlers.hpp"
#include "support/scenes.hpp"

namespace forksight::test {

class HandlerTrace {
 public:
  HandlerTrace();

  // The fork gets its record and its child; what follows is the child's.
  void make_child();
  // Handlers of one process at the one at `running`, an index in order of registration; nullopt: all came back.
  std::uint64_t run(trace::HandlerPhase phase, std::optional<std::uint32_t> running);
  std::uint64_t wait(std::uint64_t run, trace::HandlerWaitKind kind, std::uint64_t owner, std::uint32_t done = 0);
  // A prepare handler before the one of this wait has taken a lock.
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

// All of it at once: times, a thread that was ended, a handler that hangs in the parent and one in the child.
TraceBuilder whole_handler_trace();

}  // namespace forksight::test
