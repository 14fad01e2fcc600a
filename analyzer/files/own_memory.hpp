// How much memory this process uses.
#pragma once

#include <cstdint>
#include <optional>

namespace forksight::files {

// The memory of this process that counts for RLIMIT_DATA; nullopt: not known.
std::optional<std::uint64_t> data_bytes();

// The memory that this process has written, without pages of files; nullopt: not known. Reserved memory that was never
// written, such as the unused half of a vector that has grown, counts for data_bytes() only.
std::optional<std::uint64_t> written_bytes();

}  // namespace forksight::files
