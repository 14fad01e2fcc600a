// Watches atfork handlers while they run, in processes that have or had a second thread. In other processes a
// trampoline only calls its handler.
#pragma once

#include <cstdint>

#include "fork/atfork_list.hpp"
#include "forksight/trace/handlers.hpp"
#include "guest/site.hpp"
#include "record/fork_in_progress.hpp"
#include "record/slots.hpp"

namespace forksight {

// The function that replaces the handler at `place` of the list.
AtforkHandler trampoline(std::uint32_t place, trace::HandlerPhase phase);

namespace at_fork {
struct Handlers {
  static void records(const Fork& fork);
  static void reads(const Fork& fork);
};
}  // namespace at_fork

}  // namespace forksight
