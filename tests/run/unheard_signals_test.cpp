// Tests the pure function that finds the signals that no thread of a process takes.
#include "watch/unheard_signals.hpp"
#include "proc/thread_sample.hpp"

#include <gtest/gtest.h>

namespace forksight::watch {
namespace {

constexpr std::uint64_t kTerm = 1U << 14U;
constexpr std::uint64_t kInt = 1U << 1U;

proc::ThreadSample thread(std::int32_t tid, std::uint64_t pending, std::uint64_t blocked, char state = 'S') {
  proc::ThreadSample sample;
  sample.tid = tid;
  sample.status.state = state;
  sample.status.shared_pending = pending;
  sample.status.blocked = blocked;
  return sample;
}

TEST(UnheardSignals, ArePendingAndBlockedByEachThread) {
  EXPECT_EQ(find_unheard({{thread(1, kTerm, kTerm | kInt)}}, kTerm | kInt), kTerm);
  EXPECT_EQ(find_unheard({{thread(1, kTerm, kTerm), thread(2, kTerm, kTerm)}}, kTerm), kTerm);
  EXPECT_EQ(find_unheard({{thread(1, kTerm, kTerm), thread(2, kTerm, 0)}}, kTerm), 0U) << "pending for thread 2";
  EXPECT_EQ(find_unheard({{thread(1, 0, kTerm)}}, kTerm), 0U) << "not sent";
}

TEST(UnheardSignals, AreThoseOfLostThreadsAlone) { EXPECT_EQ(find_unheard({{thread(1, kTerm, kTerm)}}, kInt), 0U); }

TEST(UnheardSignals, AThreadThatEndedBlocksNothing) {
  EXPECT_EQ(find_unheard({{thread(1, kTerm, kTerm, 'Z')}}, kTerm), 0U);
  EXPECT_EQ(find_unheard({{thread(1, 0, 0, 'Z'), thread(2, kTerm, kTerm)}}, kTerm), kTerm);
  EXPECT_EQ(find_unheard({}, kTerm), 0U);
}

}  // namespace
}  // namespace forksight::watch
