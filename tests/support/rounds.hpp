// How much a costly test does. The tests with the label `stress` do more than the default tests.
#pragma once

#include <cstdlib>
#include <cstring>

namespace forksight::test {

// Returns how often a fuzz test repeats: FORKSIGHT_FUZZ_ROUNDS times if this variable is set, otherwise `usual` times.
inline int rounds_of_fuzzing(int usual) {
  const char* const wanted = std::getenv("FORKSIGHT_FUZZ_ROUNDS");
  return wanted == nullptr ? usual : std::atoi(wanted);
}

// Returns the distance between two positions that a test tries in a file: 1 if FORKSIGHT_STRESS is 1, otherwise
// `usual`. The fields of a trace have 1, 2, 4 or 8 bytes. If `usual` is odd, the test still comes to every byte of a
// field in some records.
inline std::size_t step_between_positions(std::size_t usual) {
  const char* const stress = std::getenv("FORKSIGHT_STRESS");
  return stress != nullptr && std::strcmp(stress, "1") == 0 ? 1 : usual;
}

}  // namespace forksight::test
