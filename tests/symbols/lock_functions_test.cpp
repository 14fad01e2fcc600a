#include "symbols/lock_functions.hpp"

#include <gtest/gtest.h>

namespace forksight::symbols {
namespace {

void expect(const char* name, LockRole role, const char* lock) {
  const LockFunction* const found = find_lock_function(name);
  ASSERT_NE(found, nullptr) << name;
  EXPECT_EQ(found->role, role) << name;
  EXPECT_STREQ(found->lock, lock) << name;
}

TEST(LockFunctions, KnowsAbseil) {
  expect("absl::debian3::Mutex::Lock", LockRole::kTakes, "absl::Mutex");
  expect("absl::lts_20220623::MutexLock::~MutexLock", LockRole::kReleases, "absl::Mutex");
  expect("absl::lts_20220623::CondVar::Wait", LockRole::kWaits, "absl::Mutex");
}

TEST(LockFunctions, KnowsRustInBothManglings) {
  expect("std::sys::sync::mutex::futex::Mutex::lock_contended", LockRole::kTakes, "std::sync::Mutex");
  expect("_RNvMNtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync5mutex5futexNtB2_5Mutex14lock_contended", LockRole::kTakes,
         "std::sync::Mutex");
  expect("_RNvMNtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync6rwlock5futexNtB2_6RwLock14read_contended", LockRole::kTakes,
         "std::sync::RwLock");
  expect("std::sync::poison::mutex::Mutex<T>::lock", LockRole::kTakes, "std::sync::Mutex");
  expect("core::ptr::drop_in_place<std::sync::poison::mutex::MutexGuard<i32>>", LockRole::kReleases,
         "std::sync::Mutex");
}

TEST(LockFunctions, KnowsParkingLotBeforeRust) {
  expect("parking_lot::raw_mutex::RawMutex::lock_slow", LockRole::kTakes, "parking_lot lock");
  expect("core::ptr::drop_in_place<lock_api::mutex::MutexGuard<parking_lot::raw_mutex::RawMutex,i32>>",
         LockRole::kReleases, "parking_lot lock");
}

TEST(LockFunctions, LeavesOtherFunctionsAlone) {
  for (const char* const name :
       {"app::Mutex::Lock", "absl::Notification::Notify", "std::mutex::lock", "lock",
        "absl::debian3::Mutex::AssertHeld", "core::ptr::drop_in_place<alloc::vec::Vec<i32>>", ""}) {
    EXPECT_EQ(find_lock_function(name), nullptr) << name;
  }
}

TEST(LockFunctions, KnowsWhatNeverReturns) {
  EXPECT_TRUE(never_returns("core::panicking::panic_fmt"));
  EXPECT_TRUE(never_returns("_exit"));
  EXPECT_FALSE(never_returns("exit_handlers_run"));
  EXPECT_FALSE(never_returns("nanosleep"));
}

}  // namespace
}  // namespace forksight::symbols
