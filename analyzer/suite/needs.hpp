// What a case needs and this machine does not have: told before it is run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "suite/manifest.hpp"

namespace forksight::suite {

struct Missing {
  std::string what;     // one sentence
  std::string package;  // of Debian's; "" if none is known
};

// To be called where judge() is; `folder` takes what the loader says.
std::optional<Missing> find_missing(const Case& one, const std::filesystem::path& folder);

// Why one process here may not look at another that it did not start; "": it may.
std::string find_trace_refusal();

}  // namespace forksight::suite
