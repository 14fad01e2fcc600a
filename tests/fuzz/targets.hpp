// Readers of data of strangers. Each reader takes any bytes, must end, and must not crash. Other fuzz tests run the
// readers of traces, queues, scenarios, cores and structures of Python.
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
  // Good inputs, from which other inputs are made. The files of the corpus are used, too.
  std::vector<Bytes> (*seeds)();
  // True if the reader has accepted the input.
  bool (*run)(std::span<const unsigned char> input);
  bool is_json;  // most changes are made to the parsed JSON tree, so the input stays valid JSON
};

std::span<const Target> targets();
const Target* find_target(const std::string& name);  // null: there is none

}  // namespace forksight::fuzz
