// A child waits for a lock of Python that records no holder. The tests show how the analyzer finds out whether its
// parent has the same lock.
#include "inspect/lock_copies.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <vector>

#include "made_process.hpp"

namespace forksight::inspect {
namespace {

using test::kHeap;
using test::MadeProcess;

constexpr std::uint64_t kLock = kHeap + 0x100;
constexpr std::uint64_t kObject = kHeap + 0x2000;
constexpr std::uint64_t kOther = kHeap + 0x3000;

class LockCopy : public testing::Test {
 protected:
  LockCopy() {
    for (MadeProcess* const process : {&parent_, &child_}) process->put(kHeap, std::vector<std::uint8_t>(0x4000));
  }

  static void put(MadeProcess& process, std::uint64_t at, std::uint64_t pointer, std::uint64_t next = 0) {
    process.put(at, std::bit_cast<std::array<std::uint8_t, 16>>(std::array<std::uint64_t, 2>{pointer, next}));
  }
  bool is_found() { return copies_.has_same_pointer(child_.image, parent_.image, kLock); }

  MadeProcess parent_{1000, 1};
  MadeProcess child_{2000, 1000};
  LockCopies copies_;
};

TEST_F(LockCopy, IsFoundByThePointerThatBothProcessesHave) {
  put(parent_, kObject, kLock);
  put(child_, kObject, kLock);
  EXPECT_TRUE(is_found());
  EXPECT_TRUE(is_found()) << "by the hint";
}

TEST_F(LockCopy, IsNotFoundIfTheParentHasNoSuchPointer) {
  put(child_, kObject, kLock);
  EXPECT_FALSE(is_found());
  put(parent_, kOther, kLock);
  EXPECT_FALSE(is_found()) << "another object has the lock";
}

// A lock that is taken until a thread ends has a weak reference.
TEST_F(LockCopy, IsNotFoundIfTheObjectsDiffer) {
  put(parent_, kObject, kLock, kOther);
  put(child_, kObject, kLock);
  EXPECT_FALSE(is_found());
}

TEST_F(LockCopy, IsNotFoundInSharedMemory) {
  put(parent_, kObject, kLock);
  put(child_, kObject, kLock);
  for (proc::Mapping& mapping : child_.image.mappings) mapping.shared = true;
  EXPECT_FALSE(is_found());
}

}  // namespace
}  // namespace forksight::inspect
