// Returns how often a fuzz test repeats: FORKSIGHT_FUZZ_ROUNDS times if this variable is set, otherwise `usual` times.
// The tests with the label `stress` set the variable.
#pragma once

#include <cstdlib>

namespace forksight::test {

inline int rounds_of_fuzzing(int usual) {
  const char* const wanted = std::getenv("FORKSIGHT_FUZZ_ROUNDS");
  return wanted == nullptr ? usual : std::atoi(wanted);
}

}  // namespace forksight::test
