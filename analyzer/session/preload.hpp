// How the shim is loaded into CMD: the path of the shim, the environment that CMD needs, and what prevents the loading.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "result.hpp"

namespace forksight {

// Returns the path of the shim in the installed or built tree to which the running executable belongs.
Result<std::filesystem::path> find_shim();

// Returns the value for LD_PRELOAD: the shim in front of the old value `before`.
std::string preload_value(const std::filesystem::path& shim, const char* before);

// Returns a value for ASAN_OPTIONS. Without this value, an AddressSanitizer that is a shared library refuses to start
// if the shim is loaded before it. The value also contains the options in `before`, which take precedence.
std::string asan_options_value(const char* before);

// Returns a sentence if the user's ASAN_OPTIONS tell AddressSanitizer not to start if the shim is loaded before it.
std::optional<std::string> find_asan_limit(const char* options);

// Returns the reasons why the loader will not load the shim into this program, one sentence for each.
std::vector<std::string> find_preload_limits(const std::filesystem::path& program);

// Returns a sentence if this program, or the interpreter of this script, uses the loader of musl. Such a program does
// not start with the shim, because the loader of musl fails on a library that needs glibc.
std::optional<std::string> find_other_libc(const std::filesystem::path& program);

}  // namespace forksight
