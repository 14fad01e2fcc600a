// Tests how the analyzer finds the lock for which a parked thread waits. The memory is made up with the layout of each
// version.
#include "inspect/python/python_locks.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string_view>

#include "made_python.hpp"

namespace forksight::inspect {
namespace {

using test::MadePython;

constexpr std::uint64_t kSemaphore = 0x7ffc'0000'1010;  // an address on a stack
constexpr std::uint64_t kObject = 0x20'0000;
constexpr std::uint64_t kList = 0x30'0000;  // the head of the list of waiters
constexpr std::uint64_t kType = 0x40'0000;
constexpr std::uint64_t kTypeName = 0x50'0000;
constexpr std::uint64_t kOwner = 0x7f00'0000'0700;

class PythonPark : public testing::TestWithParam<test::MadeVersion> {
 protected:
  PythonPark() : layout_(MadePython::layout_of(GetParam())), lock_(kObject + layout_.object_type + 8) {
    memory_.write(kSemaphore - 16, std::vector<std::byte>(80));
    memory_.put(kSemaphore - 8, lock_);
    link(kList, kList);
    memory_.put(kObject + layout_.object_type, kType);
    memory_.put(kType + layout_.type_name, kTypeName);
    put_lock("_thread.lock", 3);
  }

  // Links the entry into the list.
  void link(std::uint64_t next, std::uint64_t previous) {
    memory_.put(kSemaphore + 32, next);
    memory_.put(kSemaphore + 40, previous);
    memory_.put(kList, std::array<std::uint64_t, 2>{kSemaphore + 32, kSemaphore + 32});
  }
  void put_lock(std::string_view type, std::uint8_t byte, std::uint64_t owner = 0) {
    std::array<char, 32> name{};
    type.copy(name.data(), type.size());
    memory_.put(kTypeName, name);
    memory_.put(lock_, std::array<std::uint64_t, 3>{byte, owner, 0});
  }
  std::optional<inspect::PythonPark> find() const { return find_python_park(memory_, layout_, kSemaphore); }

  test::SparseMemory memory_;
  PythonLayout layout_;
  std::uint64_t lock_;  // the address of the lock, which is the first member of an object
};

TEST_P(PythonPark, FindsTheLock) {
  const auto park = find();
  ASSERT_TRUE(park);
  EXPECT_EQ(park->address, lock_);
  EXPECT_TRUE(park->is_lock);
  EXPECT_EQ(park->owner, 0U);
}

TEST_P(PythonPark, FindsTheOwnerOfARecursiveLock) {
  put_lock("_thread.RLock", 3, kOwner);
  // Up to 3.13, an RLock is not a PyMutex, so the word after the lock byte is not an owner.
  EXPECT_EQ(find().value().owner, GetParam().minor >= 14 ? kOwner : 0U);
  put_lock("_thread.RLocker", 3, kOwner);
  EXPECT_EQ(find().value().owner, 0U);
  put_lock("_thread.lock", 3, kOwner);
  EXPECT_EQ(find().value().owner, 0U);
}

// The byte of a lock is 3 if the lock is taken and a thread waits for it. If the byte is 2, the object is no lock, but
// a PyEvent, for example the event that a thread sets when it ends. If the byte is 1, the lock is taken and no waiter
// is recorded.
TEST_P(PythonPark, IsALockOnlyIfItIsLockedAndWaitedFor) {
  for (const std::uint8_t byte : std::to_array<std::uint8_t>({0, 1, 2, 4, 7, 255})) {
    put_lock("_thread.lock", byte);
    ASSERT_TRUE(find());
    EXPECT_FALSE(find()->is_lock) << int{byte};
  }
}

TEST_P(PythonPark, IsRefusedOutsideTheListOfWaiters) {
  memory_.put(kList + 8, std::uint64_t{kSemaphore});
  EXPECT_FALSE(find());
  link(kList, kList + 0x1000);
  EXPECT_FALSE(find());
  link(0, 0);
  EXPECT_FALSE(find());
}

TEST_P(PythonPark, IsOverIfTheThreadWasWoken) {
  memory_.put(kSemaphore + 48, std::uint8_t{1});
  EXPECT_FALSE(find());
}

TEST_P(PythonPark, IsRefusedWithoutItsMemory) {
  EXPECT_FALSE(find_python_park(memory_, layout_, 0));
  EXPECT_FALSE(find_python_park(memory_, layout_, kSemaphore + 0x1000));
  memory_.put(kSemaphore - 8, std::uint64_t{0xdead'0000});
  EXPECT_FALSE(find());
  memory_.put(kSemaphore - 8, std::uint64_t{0});
  EXPECT_FALSE(find());
}

std::vector<test::MadeVersion> versions_with_parks() {
  auto versions = test::made_versions();
  std::erase_if(versions, [](const auto& version) { return version.minor < kFirstDescribedMinor; });
  return versions;
}
INSTANTIATE_TEST_SUITE_P(CPython, PythonPark, testing::ValuesIn(versions_with_parks()),
                         [](const auto& test) { return test::name_of(test.param); });

TEST(PythonParkOfOldVersions, IsNone) {
  const test::SparseMemory memory;
  EXPECT_FALSE(find_python_park(memory, *known_python_layout(12), kSemaphore));
}

}  // namespace
}  // namespace forksight::inspect
