// Tests that several threads may use symbolizers at the same time. All symbolizers share the open binaries.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "dump.hpp"

namespace forksight::symbols {
namespace {

// If forksight reads a damaged part of a file, it adds an entry to the file's list of limits. One thread asks for the
// limits while the other thread opens files and names frames. Both threads must hold the mutex of the binaries
// meanwhile. Otherwise the test fails with ThreadSanitizer.
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
