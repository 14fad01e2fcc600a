#pragma once

#include <cstdint>
#include <optional>

namespace forksight::files {

// The memory of this process that counts for RLIMIT_DATA; nullopt: not known.
std::optional<std::uint64_t> data_bytes();

}  // namespace forksight::files
