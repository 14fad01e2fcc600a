// The functions that read untrusted data. Each function takes any bytes, must end, and must not crash. The
// reader of the queue is missing here, because it has a fuzz test of its own (tests/ipc/fuzz_segment.cpp).
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
  // Returns good inputs. The test makes other inputs from these, and from the files of the corpus.
  std::vector<Bytes> (*seeds)();
  // Returns true if the reader has accepted the input.
  bool (*run)(std::span<const unsigned char> input);
  bool is_json;  // most changes are made to the parsed JSON tree, so the input stays valid JSON
};

std::vector<Target> targets();
std::span<const Target> structure_targets();
std::optional<Target> find_target(const std::string& name);

}  // namespace forksight::fuzz
