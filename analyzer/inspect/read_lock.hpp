// A lock as the memory of a process has it.
#pragma once

#include <cstdint>
#include <optional>

#include "image/image.hpp"
#include "libc/lock_layout.hpp"
#include "model/model.hpp"

namespace forksight::inspect {

// The owner is one of the process' threads, or of `parent`'s: a child's lock may be held by a thread that the fork left
// behind. (In memory are the numbers of their own pid namespaces.) An owner that is neither keeps the number that it
// has.
std::optional<libc::LockState> read_lock(const image::Image& image, model::LockKind kind, std::uint64_t address,
                                         const image::Image* parent = nullptr);

}  // namespace forksight::inspect
