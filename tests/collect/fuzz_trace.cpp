// The target for libFuzzer: it passes any bytes through all stages.
#include "collect/all_stages.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(data);
  forksight::test::run_all_stages({bytes, bytes + size});
  return 0;
}
