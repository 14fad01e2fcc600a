// The shim's atfork handlers, registered by the initialiser.
#pragma once

#include <cstdint>

#include "guest/site.hpp"
#include "record/slots.hpp"

namespace forksight {

void on_prepare();
void on_parent();
void on_child();

// What a hook does around a function that forks and runs atfork handlers. The function may be called in a handler of
// another fork, or in a signal handler during another fork: end_fork_call() restores the state of that outer fork.
struct ForkCall {
  Slot* self = nullptr;  // null: nothing to record
  std::uint32_t epoch = 0;
  bool has_turn = false;
  ForkKind outer_kind{};
  std::uint32_t outer_held = 0;
  std::uint64_t outer_record = 0;
  std::uint64_t outer_entry_ns = 0;
  Site outer_site{};
  bool outer_is_told = false;
};
ForkCall begin_fork_call(const Site& site);
// Called in the parent and in the child. `child`: the return value of the function.
void end_fork_call(const ForkCall& call, long child);

// The shim's part of a fork that runs no handlers (_Fork, clone): async-signal-safe and fork-child-safe.
void prepare_bypass(Slot* self, const Site& site, std::uint32_t flags);
void child_of_bypass();
void parent_of_bypass(Slot* self, long child, int error);

}  // namespace forksight
