// Event: a touch was recorded. The touching call itself is made afterwards, and may block. observers.def lists the
// receivers.
#pragma once

#include <cstdint>

namespace forksight {

// `touch`: ref of the record; 0: none was written. async-signal-safe.
void touch_recorded(std::uint64_t touch);

}  // namespace forksight
