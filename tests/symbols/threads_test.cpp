// Tests that threads may use several symbolizers at the same time. They share the binaries that are open.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "dump.hpp"

namespace forksight::symbols {
namespace {

// A file's list of limits grows when a part of the file is read that is not whole. One thread asks for the limits while
// the other one opens files and names frames. The test with ThreadSanitizer fails if one of them does so without the
// mutex of the binaries.
TEST(SymbolizerThreads, AskForLimitsWhileOthersRead) {
  const Dump dump = run_fixture("O2");
  Symbolizer shared(dump.modules);
  std::atomic<bool> is_over{false};
  std::atomic<bool> has_asked{false};
  std::size_t most = 0;
  std::thread asks([&] {
    while (!is_over) {
      most = std::max(most, shared.limits().size());
      has_asked = true;
    }
  });
  while (!has_asked) std::this_thread::yield();
  for (const auto& [label, stack] : dump.stacks)
    EXPECT_FALSE(shared.unwind(dump.sample(label)).frames.empty()) << label;
  is_over = true;
  asks.join();
  EXPECT_LE(most, shared.limits().size());
}

}  // namespace
}  // namespace forksight::symbols
