// predict_outcome() predicts what an operation on a condition variable with lost waiters will do. These tests check the
// predictions for both layouts that a condition variable has in the versions of glibc. For the layout of the installed
// libc, a test also compares the prediction with what pthread_cond_signal() does.
#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <cstring>

#include "locks/condition_outcome.hpp"
#include "support/this_libc.hpp"

namespace forksight {
namespace {

using trace::SyncOperation;

struct Layout {
  const char* name;
  const abi::ConditionLayout& layout;
};

class EachLayout : public testing::TestWithParam<Layout> {
 protected:
  const abi::ConditionLayout& layout() const { return GetParam().layout; }

  // A condition variable with `lost` waiters that were never signalled and no longer exist.
  abi::Condition with_lost(std::uint32_t lost) const {
    abi::Condition condition{};
    condition.wseq = std::uint64_t{lost} << 1U;
    condition.wrefs = lost << 3U;
    if (layout().references != 0) condition.references[0] = lost << 1U;
    return condition;
  }
};

TEST_P(EachLayout, KeepsWhatWasStored) {
  abi::Condition condition{};
  condition.wseq = 0x1234'5678'9abc;
  condition.g1_start = 0x1234'5678;
  condition.sizes[0] = 3;
  condition.sizes[1] = 4;
  condition.g1_size = 5U << 2U;
  condition.wrefs = 9U << 3U | 2U;
  std::array<unsigned char, abi::kConditionBytes> memory{};
  memory.fill(0xee);
  abi::store_condition(layout(), condition, memory.data());
  const abi::Condition loaded = abi::load_condition(layout(), memory.data());
  EXPECT_EQ(loaded.wseq, condition.wseq);
  EXPECT_EQ(loaded.g1_start, condition.g1_start);
  EXPECT_EQ(loaded.sizes[0], 3U);
  EXPECT_EQ(loaded.sizes[1], 4U);
  EXPECT_EQ(loaded.g1_size, condition.g1_size);
  EXPECT_EQ(loaded.waiters(), 9U);
  EXPECT_FALSE(loaded.is_shared());
  EXPECT_EQ(abi::load<std::uint32_t>(memory.data() + layout().signals), 0xeeee'eeeeU);
}

TEST_P(EachLayout, DestroyBlocksWhileWaitersAreCounted) {
  abi::Condition lost = with_lost(1);
  EXPECT_EQ(predict_outcome(lost, SyncOperation::kDestroy, 1, 0, 0), ConditionOutcome::kBlocks);
  abi::Condition none{};
  EXPECT_EQ(predict_outcome(none, SyncOperation::kDestroy, 0, 0, 0), ConditionOutcome::kPasses);
}

// The first signal makes the lost waiters the group G1. Then a real waiter begins to wait. The second signal goes to a
// lost waiter. The third signal must switch the groups again. The third signal blocks only with the layout that counts
// the references to each group.
TEST_P(EachLayout, SignalsGoToTheLostFirst) {
  abi::Condition at = with_lost(2);
  EXPECT_EQ(predict_outcome(at, SyncOperation::kSignal, 2, 0, 0), ConditionOutcome::kPasses);
  at.wseq += 2;
  at.wrefs += 1U << 3U;
  EXPECT_EQ(predict_outcome(at, SyncOperation::kSignal, 2, 1, 0), ConditionOutcome::kStolen);
  const ConditionOutcome third = predict_outcome(at, SyncOperation::kSignal, 2, 1, 0);
  EXPECT_EQ(third, layout().references != 0 ? ConditionOutcome::kBlocks : ConditionOutcome::kPasses);
}

TEST_P(EachLayout, NoSignalIsStolenIfNoThreadWaits) {
  abi::Condition at = with_lost(2);
  EXPECT_EQ(predict_outcome(at, SyncOperation::kSignal, 2, 0, 0), ConditionOutcome::kPasses);
  EXPECT_EQ(predict_outcome(at, SyncOperation::kSignal, 2, 0, 0), ConditionOutcome::kPasses);
  EXPECT_EQ(predict_outcome(at, SyncOperation::kSignal, 2, 0, 0), ConditionOutcome::kPasses);
}

INSTANTIATE_TEST_SUITE_P(Condition, EachLayout,
                         testing::Values(Layout{"WithReferences", abi::kConditionWithReferences},
                                         Layout{"WithoutReferences", abi::kConditionWithoutReferences}),
                         [](const auto& about) { return about.param.name; });

// Signals a condition variable whose three waiters do not exist. Each call of pthread_cond_signal() must change the
// condition variable in the way that predict_outcome() predicted.
TEST(Foreseen, IsWhatThisLibcDoes) {
  const abi::ConditionLayout* const layout = abi::layout_of(test::this_libc().condition);
  ASSERT_NE(layout, nullptr);
  abi::Condition made{};
  made.wseq = 3U << 1U;
  made.wrefs = 3U << 3U;
  pthread_cond_t real = PTHREAD_COND_INITIALIZER;
  abi::store_condition(*layout, made, &real);
  for (int signals = 1; signals <= 3; ++signals) {
    EXPECT_EQ(predict_outcome(made, SyncOperation::kSignal, 3, 0, 0), ConditionOutcome::kPasses);
    ASSERT_EQ(pthread_cond_signal(&real), 0);
    const abi::Condition now = abi::load_condition(*layout, &real);
    EXPECT_EQ(now.wseq, made.wseq) << signals;
    EXPECT_EQ(now.g1_start, made.g1_start) << signals;
    EXPECT_EQ(now.g1_size, made.g1_size) << signals;
    EXPECT_EQ(now.sizes[now.g1()], made.sizes[made.g1()]) << signals;
    EXPECT_EQ(now.wrefs, made.wrefs) << signals;
  }
}

}  // namespace
}  // namespace forksight
