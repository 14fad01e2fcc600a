// How often a fuzz test repeats: `usual` times, or as often as FORKSIGHT_FUZZ_ROUNDS says. The tests with the label
// `stress` set this variable.
#pragma once

#include <cstdlib>

namespace forksight::test {

inline int rounds_of_fuzzing(int usual) {
  const char* const wanted = std::getenv("FORKSIGHT_FUZZ_ROUNDS");
  return wanted == nullptr ? usual : std::atoi(wanted);
}

}  // namespace forksight::test
