// Tests how much memory the names and stacks of traces may take.
#include "collect/trace_budget.hpp"

#include <gtest/gtest.h>

#include <cstddef>

#include "files/budgets.hpp"

namespace forksight::collect {
namespace {

constexpr std::size_t kMib = std::size_t{1} << 20U;

// Returns how many names of one MiB the file may have.
std::size_t fill(TraceBudget& budget, std::size_t file_bytes) {
  budget.begin_file(file_bytes);
  std::size_t names = 0;
  while (budget.allows_name(kMib)) ++names;
  budget.end_file();
  return names;
}

TEST(TraceBudget, NamesOfAFileMayTakeItsSizeAndHalfOfWhatIsLeft) {
  const std::size_t most = files::kMaxTraceNameBytes / kMib;
  TraceBudget budget;
  EXPECT_EQ(fill(budget, 0), most / 2);
  EXPECT_EQ(fill(budget, 10 * kMib), 10 + most / 4);
  EXPECT_EQ(fill(budget, 0), most / 8);
}

TEST(TraceBudget, ALargeNameDoesNotTakeTheRoomOfSmallerOnes) {
  TraceBudget budget;
  budget.begin_file(0);
  EXPECT_FALSE(budget.allows_name(files::kMaxTraceNameBytes));
  EXPECT_TRUE(budget.allows_name(kMib));
}

}  // namespace
}  // namespace forksight::collect
