// Runs one target under libFuzzer, which chooses inputs by code coverage. FUZZ_TARGET is the name of the target.
#include <cstdint>

#include "targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto target = forksight::fuzz::find_target(FUZZ_TARGET);
  (void)target->run({data, size});
  return 0;
}
