// The state of a lock in the memory of a process.
#pragma once

#include <cstdint>
#include <optional>

#include "image/image.hpp"
#include "libc/lock_layout.hpp"
#include "model/model.hpp"

namespace forksight::inspect {

// The thread number of the owner in memory belongs to the pid namespace of the process. It is translated to forksight's
// if the owner is a thread of the process or of `parent` (a fork may have left the owner behind). Otherwise it stays
// unchanged.
std::optional<libc::LockState> read_lock(const image::Image& image, model::LockKind kind, std::uint64_t address,
                                         const image::Image* parent = nullptr);

}  // namespace forksight::inspect
