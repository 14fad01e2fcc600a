// Finds out, before a case is run, whether this machine lacks anything that the case needs.
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

// Returns the first thing that is missing. The calling process must fulfil the conditions of judge(). The output of the
// loader goes to `folder`.
std::optional<Missing> find_missing(const Case& one, const std::filesystem::path& folder);

// Returns the reason why a process on this machine may not examine a process that it did not start. Returns "" if the
// process may do so.
std::string find_trace_refusal();

}  // namespace forksight::suite
