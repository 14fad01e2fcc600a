// The state of a lock in the memory of a process.
#pragma once

#include <cstdint>
#include <optional>

#include "image/image.hpp"
#include "libc/lock_layout.hpp"
#include "model/model.hpp"

namespace forksight::inspect {

// Reads the state of a lock. In memory, the owner is a thread id of the pid namespace of the process. If the owner is a
// thread of the process or of `parent` (a fork may have left the owner behind), the result has the thread's id in
// forksight's namespace. Otherwise the result has the id that is in memory.
std::optional<libc::LockState> read_lock(const image::Image& image, model::LockKind kind, std::uint64_t address,
                                         const image::Image* parent = nullptr);

}  // namespace forksight::inspect
