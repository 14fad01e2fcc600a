// Tests which lock a thread waits for, if the lock records no owner. The memory and the stacks are made up.
#include "inspect/lock_references.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <utility>

#include "made_process.hpp"

namespace forksight::inspect {
namespace {

using test::kHeap;
using test::MadeProcess;

class Awaited : public testing::Test {
 protected:
  static constexpr std::int32_t kPid = 4000;
  static constexpr std::uint64_t kLock = kHeap + 0x100;
  static constexpr std::uint64_t kOther = kHeap + 0x200;
  static constexpr std::uint64_t kOwnWord = kHeap + 0x1140;  // a futex word of the thread itself
  static constexpr std::uint64_t kStack = kHeap + 0x8000;

  Awaited() : process_(kPid, 1) {
    thread_.registers.emplace();
    thread_.registers->set(symbols::kRsp, kStack);
    // The thread's own memory is readable.
    for (std::uint64_t at = 0; at < 0x1000; at += 8) put(kStack + at, 0);
    for (std::uint64_t at = kOwnWord - 0x140; at < kOwnWord + 0x100; at += 8) put(at, 0);
  }

  void put(std::uint64_t address, std::uint64_t value) {
    std::uint8_t bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    process_.put(address, bytes);
  }

  // `functions`: the functions on the stack, innermost first, without those of libc.
  std::optional<AwaitedLock> find(std::uint64_t word, std::initializer_list<const char*> functions) {
    StuckCall call;
    call.kind = CallKind::kFutex;
    call.word = word;
    for (const char* const function : functions) {
      model::Frame frame;
      frame.function = function;
      call.stack.frames.push_back(std::move(frame));
    }
    return find_awaited_lock(process_.image, thread_, call);
  }

  MadeProcess process_;
  image::Thread thread_;
};

TEST_F(Awaited, AMutexOfRustIsItsWord) {
  const auto lock = find(kLock, {"std::sys::pal::unix::futex::futex_wait",
                                 "std::sys::sync::mutex::futex::Mutex::lock_contended", "app::flush", "app::main"});
  ASSERT_TRUE(lock);
  EXPECT_EQ(lock->family, LockFamily::kRustMutex);
  EXPECT_EQ(lock->address, kLock);
  EXPECT_EQ(lock->object, kLock);
}

TEST_F(Awaited, AWriterOfRustSleepsBehindTheFirstWord) {
  const auto writer = find(kLock + 4, {"std::sys::sync::rwlock::futex::RwLock::write_contended", "app::flush"});
  ASSERT_TRUE(writer);
  EXPECT_EQ(writer->object, kLock);
  const auto reader = find(kLock, {"std::sys::sync::rwlock::futex::RwLock::read_contended", "app::flush"});
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->object, kLock);
}

TEST_F(Awaited, TheMutexOfAReentrantLockIsItsSecondWord) {
  const auto lock = find(
      kLock + 8, {"std::sys::sync::mutex::futex::Mutex::lock_contended", "std::sys::sync::mutex::futex::Mutex::lock",
                  "std::sync::reentrant_lock::ReentrantLock::lock<T>", "std::io::stdio::Stdout::lock"});
  ASSERT_TRUE(lock);
  EXPECT_EQ(lock->address, kLock + 8);
  EXPECT_EQ(lock->object, kLock);
}

TEST_F(Awaited, AConditionVariableIsNoLock) {
  EXPECT_FALSE(find(kLock, {"std::sys::pal::unix::futex::futex_wait", "std::sys::sync::condvar::futex::Condvar::wait",
                            "std::sys::sync::mutex::futex::Mutex::lock_contended"}));
  EXPECT_FALSE(find(kOwnWord, {"absl::Waiter::Wait", "absl::CondVar::WaitCommon", "absl::Mutex::Block"}));
}

TEST_F(Awaited, AFunctionOfTheProgramIsNoLock) {
  EXPECT_FALSE(find(kLock, {"app::wait_for_answer", "std::sys::sync::mutex::futex::Mutex::lock_contended"}));
  EXPECT_FALSE(find(0, {"std::sys::sync::mutex::futex::Mutex::lock_contended"}));
}

class ParkingLot : public Awaited {
 protected:
  std::optional<AwaitedLock> find_mutex() {
    return find(kOwnWord, {"parking_lot_core::thread_parker::imp::ThreadParker::futex_wait",
                           "_<parking_lot_core::thread_parker::imp::ThreadParker as ThreadParkerT>::park",
                           "parking_lot::raw_mutex::RawMutex::lock_slow", "app::flush"});
  }
};

TEST_F(ParkingLot, TheLockIsBesideTheWordAndOnTheStack) {
  put(kOwnWord - 0x20, kLock);
  put(kStack + 0x40, kLock);
  put(kStack + 0x80, kOther);
  const auto lock = find_mutex();
  ASSERT_TRUE(lock);
  EXPECT_EQ(lock->object, kLock);
}

TEST_F(ParkingLot, TheLockMustBeInBothPlaces) {
  put(kOwnWord - 0x20, kLock);
  EXPECT_FALSE(find_mutex());
  put(kStack + 0x40, kOther);
  EXPECT_FALSE(find_mutex());
}

TEST_F(ParkingLot, OneOfTwoIsNotKnown) {
  for (const std::uint64_t lock : {kLock, kOther}) {
    put(lock == kLock ? kOwnWord - 0x20 : kOwnWord - 0x18, lock);
    put(lock == kLock ? kStack + 0x40 : kStack + 0x80, lock);
  }
  EXPECT_FALSE(find_mutex());
}

TEST_F(ParkingLot, AWriterThatWaitsForReadersHasTheAddressPlusOne) {
  put(kOwnWord - 0x20, kLock + 1);
  put(kStack + 0x40, kLock);
  const auto lock = find(kOwnWord, {"parking_lot_core::parking_lot::park",
                                    "parking_lot::raw_rwlock::RawRwLock::wait_for_readers", "app::flush"});
  ASSERT_TRUE(lock);
  EXPECT_EQ(lock->object, kLock);
}

class Abseil : public Awaited {
 protected:
  std::optional<AwaitedLock> find_mutex() {
    return find(kOwnWord,
                {"absl::debian3::synchronization_internal::Waiter::Wait", "AbslInternalPerThreadSemWait_debian3",
                 "absl::debian3::Mutex::Block", "absl::debian3::Mutex::LockSlowLoop", "app::flush"});
  }
  static constexpr std::uint64_t kIdentity = kOwnWord & ~std::uint64_t{0xff};
  static constexpr std::uint64_t kWriterAndWaiter = 0x0c;
};

TEST_F(Abseil, TheMutexNamesItsLastWaiter) {
  put(kStack + 0x40, kLock);
  put(kStack + 0x48, kOther);
  put(kLock, kIdentity | kWriterAndWaiter);
  put(kOther, (kIdentity + 0x100) | kWriterAndWaiter);
  const auto lock = find_mutex();
  ASSERT_TRUE(lock);
  EXPECT_EQ(lock->family, LockFamily::kAbseil);
  EXPECT_EQ(lock->object, kLock);
}

TEST_F(Abseil, APointerToTheWaiterIsNoMutex) {
  put(kStack + 0x40, kLock);
  put(kLock, kIdentity);
  EXPECT_FALSE(find_mutex());
}

TEST(LockFamilies, AreKnownByTheNamesOfFunctions) {
  EXPECT_EQ(family_of_function("std::sys::sync::mutex::futex::Mutex::lock_contended"), LockFamily::kRustMutex);
  EXPECT_EQ(family_of_function("std::sys::unix::locks::futex_mutex::Mutex::lock_contended"), LockFamily::kRustMutex);
  EXPECT_EQ(family_of_function("parking_lot::raw_rwlock::RawRwLock::lock_shared_slow"), LockFamily::kParkingLotRwlock);
  EXPECT_EQ(family_of_function("absl::lts_20220623::Mutex::LockSlow"), LockFamily::kAbseil);
  EXPECT_EQ(family_of_function("absl::debian3::Mutex::Unlock"), LockFamily::kNone);
  EXPECT_EQ(family_of_function("app::Mutex::LockSlow"), LockFamily::kNone);
}

}  // namespace
}  // namespace forksight::inspect
