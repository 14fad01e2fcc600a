// How the shim gets into CMD: where it lies, what the environment must say, and what stands in the way.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "result.hpp"

namespace forksight {

// Where the installed or built tree has the shim, from the running executable.
Result<std::filesystem::path> find_shim();

// The value of LD_PRELOAD with the shim in front of what was there.
std::string preload_value(const std::filesystem::path& shim, const char* before);

// The value of ASAN_OPTIONS with which AddressSanitizer, where it is a library of its own, starts behind the shim: it
// refuses to start behind anything unless told otherwise. What was there is kept, and wins.
std::string asan_options_value(const char* before);

// One sentence if the user's ASAN_OPTIONS ask for that refusal.
std::optional<std::string> find_asan_limit(const char* options);

// Why the loader will not, or not quietly, take the shim into this program; one sentence each.
std::vector<std::string> find_preload_limits(const std::filesystem::path& program);

// One sentence if this program, or the interpreter of this script, would not start with the shim: its loader is that of
// another libc, which takes a library that needs glibc for an error.
std::optional<std::string> find_other_libc(const std::filesystem::path& program);

}  // namespace forksight
