// The shim's atfork handlers, registered by the initialiser.
#pragma once

#include <cstdint>

#include "guest/site.hpp"

namespace forksight {

void on_prepare();
void on_parent();
void on_child();

struct Slot;

// The shim's part of a fork that runs no handlers (_Fork, clone): async-signal-safe and fork-child-safe.
void prepare_bypass(Slot* self, const Site& site, std::uint32_t flags);
void child_of_bypass();
void parent_of_bypass(Slot* self, long child, int error);

}  // namespace forksight
