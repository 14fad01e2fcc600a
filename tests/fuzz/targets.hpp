// The readers of what strangers control that no other fuzz test drives: each takes any bytes, must end, and must not
// crash. Traces, queues, scenarios, cores and structures of Python have fuzz tests of their own.
#pragma once

#include <cstddef>
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

std::span<const Target> targets();
const Target* find_target(const std::string& name);  // null: there is none

}  // namespace forksight::fuzz
