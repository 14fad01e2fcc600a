// Finds the machine's own CUDA driver, for cases that otherwise run on the test driver in their folder.
#pragma once

#include <filesystem>
#include <string>

namespace forksight::suite {

struct RealDriver {
  std::filesystem::path library;  // "": there is no driver with a device that answers
  std::string reason;             // why no driver was found
};

// Asks each candidate in a separate process, because a driver may hang, and because a driver changes the process that
// loads it.
RealDriver find_real_driver();

}  // namespace forksight::suite
