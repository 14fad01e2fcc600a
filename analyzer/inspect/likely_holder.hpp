// A child waits for a lock that does not record who holds it: a lock of Rust, parking_lot or abseil. The stacks of the
// lost threads, which are still in the child's memory, show which of them was between taking the lock and releasing it.
#pragma once

#include <cstdint>
#include <optional>

#include "image/image.hpp"
#include "inspect/scene.hpp"

namespace forksight::inspect {

// Nothing, if the thread waits for no such lock, or if the stacks do not show that exactly one thread held it. `fork`:
// the fork that left the threads behind.
std::optional<model::LikelyHolder> find_likely_holder(Scene& scene, std::size_t child, const image::Thread& waiting,
                                                      const model::Fork& fork);

}  // namespace forksight::inspect
