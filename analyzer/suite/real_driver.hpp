// The machine's own CUDA driver, for cases that are else run on the test driver beside them.
#pragma once

#include <filesystem>
#include <string>

namespace forksight::suite {

struct RealDriver {
  std::filesystem::path library;  // "": there is none with a device that answers
  std::string reason;             // why not
};

// Asks each candidate in a process of its own: a driver may hang, and leaves its mark on whom it is loaded into.
RealDriver find_real_driver();

}  // namespace forksight::suite
