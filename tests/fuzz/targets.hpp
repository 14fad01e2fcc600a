// The readers of what strangers control, except for the queue: each takes any bytes, must end, and must not crash. The
// queue has a fuzz test of its own, tests/ipc/fuzz_segment.cpp.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace forksight::fuzz {

using Bytes = std::vector<unsigned char>;

struct Target {
  const char* name;
  const char* what;
  // Good inputs, to begin with. The files of the kept corpus come on top.
  std::vector<Bytes> (*seeds)();
  // True if the reader has accepted the input.
  bool (*run)(std::span<const unsigned char> input);
  bool is_json;  // the input is also changed as a tree, so that most of it is still JSON
};

std::vector<Target> targets();
std::span<const Target> structure_targets();
std::optional<Target> find_target(const std::string& name);

}  // namespace forksight::fuzz
