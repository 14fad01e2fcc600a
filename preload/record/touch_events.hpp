// A touch was recorded, and the call that it is about goes on after this. observers.def lists who is told.
#pragma once

#include <cstdint>

namespace forksight {

// `touch`: ref of the record; 0: none was written. async-signal-safe.
void touch_recorded(std::uint64_t touch);

}  // namespace forksight
