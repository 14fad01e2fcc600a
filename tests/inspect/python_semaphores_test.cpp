// Tests the search in made-up memory for the Python object that belongs to a lock of multiprocessing.
#include "inspect/python_semaphores.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <string_view>
#include <vector>

#include "made_process.hpp"

namespace forksight::inspect {
namespace {

using test::kHeap;
using test::MadeProcess;

constexpr std::uint64_t kSemaphore = 0x7f00'0000'1000;
constexpr std::uint64_t kObject = kHeap + 0x400;
constexpr std::uint64_t kType = kHeap + 0x800;
constexpr std::uint64_t kName = kHeap + 0xc00;
constexpr std::uint64_t kThread = 0x7f11'0000'0740;
constexpr std::uint64_t kBudget = std::uint64_t{16} << 20U;

class SemLockSearch : public testing::Test {
 protected:
  SemLockSearch() : process_(100, 1) {
    // Fills the memory without holes, because the search ends at a hole.
    process_.put(kHeap, std::vector<std::uint8_t>(0x2000));
    put_word(kObject - 16, 3);  // references
    put_word(kObject - 8, kType);
    put_word(kObject, kSemaphore);
    put_word(kObject + 8, kThread);
    put_numbers(1, 1, 1);
    put_word(kType + 24, kName);
    put_text("_multiprocessing.SemLock");
  }

  void put_word(std::uint64_t address, std::uint64_t word) {
    process_.put(address, std::bit_cast<std::array<std::uint8_t, 8>>(word));
  }
  void put_numbers(std::int32_t count, std::int32_t maxvalue, std::int32_t kind) {
    process_.put(kObject + 16,
                 std::bit_cast<std::array<std::uint8_t, 12>>(std::array<std::int32_t, 3>{count, maxvalue, kind}));
  }
  void put_text(std::string_view text) {
    std::vector<std::uint8_t> bytes(text.begin(), text.end());
    bytes.push_back(0);
    process_.put(kName, bytes);
  }
  std::optional<SemLock> find(std::uint64_t hint = 0, std::uint64_t budget = kBudget) {
    return find_sem_lock(process_.image, kSemaphore, hint, budget);
  }

  MadeProcess process_;
};

TEST_F(SemLockSearch, FindsALockAndWhoAcquiredItLast) {
  const auto found = find();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->handle_address, kObject);
  EXPECT_EQ(found->thread, kThread);
  EXPECT_EQ(found->count, 1);
  EXPECT_TRUE(found->is_lock);
}

TEST_F(SemLockSearch, AHintSavesTheSearch) {
  EXPECT_TRUE(find(kObject, 0).has_value());
  EXPECT_FALSE(find(kObject + 8, 0).has_value()) << "the hint is wrong, and no memory may be searched";
  EXPECT_FALSE(find(0, 0).has_value());
}

TEST_F(SemLockSearch, TellsLocksFromCounters) {
  put_numbers(0, 2147483647, 1);  // Semaphore(0), Condition, Event
  EXPECT_FALSE(find()->is_lock);
  put_numbers(2, 2147483647, 0);  // RLock
  EXPECT_TRUE(find()->is_lock);
  EXPECT_EQ(find()->count, 2);
}

TEST_F(SemLockSearch, SkipsAnObjectThatWasFreed) {
  for (const std::uint64_t word : {std::uint64_t{0}, kHeap + 0x1800}) {
    put_word(kObject - 16, word);
    EXPECT_FALSE(find().has_value());
    EXPECT_FALSE(find(kObject).has_value()) << "a freed object must not be found by a hint either";
  }
  // The living object stands behind the freed one. As in Python 3.14, the word with its reference count also has flags.
  put_word(kObject + 0x200 - 16, std::uint64_t{1} << 48U | 2);
  put_word(kObject + 0x200 - 8, kType);
  put_word(kObject + 0x200, kSemaphore);
  put_word(kObject + 0x200 + 16, std::uint64_t{1} << 32U | 7);  // count 7, maxvalue 1
  put_word(kObject + 0x200 + 24, 1);
  ASSERT_TRUE(find().has_value());
  EXPECT_EQ(find()->count, 7);
}

TEST_F(SemLockSearch, KnowsTheTypeOfABuildWithoutTheGil) {
  put_word(kType + 24, 0);
  put_word(kType + 40, kName);
  ASSERT_TRUE(find().has_value());
  // In a build of Python without the GIL, the memory does not show which of two objects is alive.
  put_word(kObject + 0x200 - 8, kType);
  put_word(kObject + 0x200, kSemaphore);
  put_word(kObject + 0x200 + 16, std::uint64_t{1} << 32U);  // count 0, maxvalue 1
  put_word(kObject + 0x200 + 24, 1);
  EXPECT_FALSE(find().has_value());
  EXPECT_TRUE(find(kObject).has_value());
}

TEST_F(SemLockSearch, RefusesWhatOnlyLooksLikeIt) {
  put_numbers(1, 1, 2);
  EXPECT_FALSE(find().has_value()) << "an unknown kind";
  put_numbers(1, 0, 1);
  EXPECT_FALSE(find().has_value()) << "a semaphore with a maximum of 0";
  put_numbers(1, 1, 1);
  put_text("SomethingElse");
  EXPECT_FALSE(find().has_value()) << "an object of another type";
  put_text("SemLock");
  EXPECT_TRUE(find().has_value());
  put_word(kObject - 8, 0x10);
  EXPECT_FALSE(find().has_value()) << "a type that cannot be read";
}

TEST_F(SemLockSearch, SearchesNoSharedOrReadOnlyMemory) {
  for (proc::Mapping& mapping : process_.image.mappings) mapping.shared = true;
  EXPECT_FALSE(find().has_value());
  for (proc::Mapping& mapping : process_.image.mappings) mapping.shared = mapping.writable = false;
  EXPECT_FALSE(find().has_value());
}

}  // namespace
}  // namespace forksight::inspect
