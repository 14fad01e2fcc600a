// The state of a lock in the memory of a process.
#pragma once

#include <cstdint>
#include <optional>

#include "image/image.hpp"
#include "libc/lock_layout.hpp"
#include "model/model.hpp"

namespace forksight::inspect {

// The owner is a thread of the process or of `parent`: the fork may have left the holder of a child's lock behind.
// (Numbers in memory belong to the pid namespaces of these processes.) Any other owner keeps its number unchanged.
std::optional<libc::LockState> read_lock(const image::Image& image, model::LockKind kind, std::uint64_t address,
                                         const image::Image* parent = nullptr);

}  // namespace forksight::inspect
