// Finds out, before a case is run, what the case needs and this machine does not have.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "suite/manifest.hpp"

namespace forksight::suite {

struct Missing {
  std::string what;     // one sentence
  std::string package;  // the Debian package; "" if none is known
};

// The calling process must fulfil the conditions of judge(). The output of the loader goes to `folder`.
std::optional<Missing> find_missing(const Case& one, const std::filesystem::path& folder);

// The reason why a process here may not examine another one that it did not start; "" if it may.
std::string find_trace_refusal();

}  // namespace forksight::suite
