// Tests the functions that say, from the memory of a lock, whether the lock is held and by whom.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "forksight/abi/barrier.hpp"
#include "forksight/abi/guard.hpp"
#include "forksight/abi/mutex.hpp"
#include "forksight/abi/rwlock.hpp"
#include "forksight/abi/semaphore.hpp"
#include "forksight/abi/spinlock.hpp"
#include "forksight/abi/thread.hpp"
#include "support/this_libc.hpp"

namespace forksight::abi {
namespace {

TEST(Version, IsParsedFromTheTextOfGlibc) {
  EXPECT_TRUE(parse_version("2.36") == (Version{2, 36}));
  EXPECT_TRUE(parse_version("2.42.9000") == (Version{2, 42}));
  for (const char* const text : {"", "2", "2.", "two", "2.36-9", "2.300", "300.1", ".36", "2.x"}) {
    EXPECT_FALSE(parse_version(text).is_known()) << text;
  }
  EXPECT_FALSE(parse_version(nullptr).is_known());
}

TEST(Versions, IncludeTheFirstAndTheLast) {
  constexpr Versions versions{{2, 28}, {2, 43}};
  EXPECT_TRUE(versions.have({2, 28}));
  EXPECT_TRUE(versions.have({2, 43}));
  EXPECT_FALSE(versions.have({2, 27}));
  EXPECT_FALSE(versions.have({2, 44}));
  EXPECT_FALSE(versions.have({3, 30}));
  EXPECT_FALSE(versions.have({}));
}

TEST(ThisLibc, IsKnown) {
  const Libc libc = test::this_libc();
  EXPECT_TRUE(Mutex::kVersions.have(libc.version)) << gnu_get_libc_version();
  EXPECT_NE(libc.condition, ConditionKind::kUnknown);
  EXPECT_NE(thread_layout(libc.version), nullptr);
}

TEST(ThisLibc, StoresWhetherAThreadCanBeCancelled) {
  const Libc libc = test::this_libc();
  const ThreadLayout* const layout = thread_layout(libc.version);
  if (layout == nullptr || kWithoutCancelFlags.have(libc.version)) GTEST_SKIP() << "not known";
  const auto flags = [&] {
    std::uint32_t read = 0;
    std::memcpy(&read, reinterpret_cast<const char*>(pthread_self()) + layout->cancel_handling, sizeof read);
    return read & (kCancelDisabled | kCancelAsynchronous);
  };
  EXPECT_EQ(flags(), 0U);
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  EXPECT_EQ(flags(), kCancelAsynchronous);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  EXPECT_EQ(flags(), kCancelAsynchronous | kCancelDisabled);
  pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, nullptr);
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
}

TEST(ThreadLayouts, EachVersionHasOne) {
  for (std::uint8_t minor = 28; minor <= 43; ++minor) {
    const auto version = Version{2, minor};
    EXPECT_EQ(std::ranges::count_if(kThreadLayouts, [&](const auto& layout) { return layout.versions.have(version); }),
              1)
        << int{minor};
  }
  EXPECT_EQ(thread_layout({2, 44}), nullptr);
  EXPECT_EQ(thread_layout({}), nullptr);
}

TEST(Mutex, WithPriorityProtectionKeepsItsCeilingWhileItIsFree) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  ASSERT_EQ(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_PROTECT), 0);
  pthread_mutex_t real;
  ASSERT_EQ(pthread_mutex_init(&real, &attributes), 0);
  const auto mutex = load<Mutex>(&real);
  EXPECT_TRUE(mutex.has_ceiling());
  EXPECT_NE(mutex.lock, 0U);
  EXPECT_FALSE(mutex.is_held());
  EXPECT_EQ(mutex.holder(), 0);
}

TEST(Mutex, WhoseOwnerDiedIsFree) {
  Mutex mutex{};
  mutex.kind = Mutex::kRobust;
  mutex.lock = 0x4000'0000;
  mutex.owner = 7;
  EXPECT_FALSE(mutex.is_held());
  mutex.lock = 0x8000'0000U | 7U;
  EXPECT_TRUE(mutex.is_held());
  EXPECT_EQ(mutex.holder(), 7);
  mutex.owner = 0;
  EXPECT_EQ(mutex.holder(), 7);
}

TEST(Mutex, TakenFromADeadOwnerNamesItsNewHolder) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  ASSERT_EQ(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST), 0);
  pthread_mutex_t real;
  ASSERT_EQ(pthread_mutex_init(&real, &attributes), 0);
  std::thread([&] { pthread_mutex_lock(&real); }).join();
  ASSERT_EQ(pthread_mutex_lock(&real), EOWNERDEAD);
  const auto mutex = load<Mutex>(&real);
  EXPECT_EQ(mutex.owner, Mutex::kInconsistent);
  EXPECT_EQ(mutex.holder(), static_cast<int>(::syscall(SYS_gettid)));
}

TEST(Rwlock, IsFreeInTheWritePhaseThatItsLastWriterLeft) {
  pthread_rwlock_t real = PTHREAD_RWLOCK_INITIALIZER;
  pthread_rwlock_wrlock(&real);
  auto lock = load<Rwlock>(&real);
  EXPECT_TRUE(lock.is_taken());
  EXPECT_TRUE(lock.is_write_locked());
  EXPECT_EQ(lock.cur_writer, static_cast<int>(::syscall(SYS_gettid)));
  pthread_rwlock_unlock(&real);
  lock = load<Rwlock>(&real);
  EXPECT_FALSE(lock.is_taken());
  EXPECT_NE(lock.readers, 0U) << "in this glibc, the bit of the write phase stays set";
}

TEST(Defaults, AreOfFreeLocks) {
  EXPECT_FALSE(Mutex{}.is_held());
  EXPECT_FALSE(Rwlock{}.is_taken());
  EXPECT_FALSE(Spinlock{}.is_held());
  EXPECT_FALSE(Semaphore{}.is_empty());
  EXPECT_EQ(Barrier{}.inside(), 0U);
  EXPECT_FALSE(is_initialising(0));
}

TEST(Spinlock, IsHeldAfterALock) {
  pthread_spinlock_t real;
  pthread_spin_init(&real, PTHREAD_PROCESS_PRIVATE);
  EXPECT_FALSE(load<Spinlock>(const_cast<int*>(&real)).is_held());
  pthread_spin_lock(&real);
  EXPECT_TRUE(load<Spinlock>(const_cast<int*>(&real)).is_held());
  EXPECT_TRUE((Spinlock{-3}).is_held()) << "three threads wait for the spinlock";
}

}  // namespace
}  // namespace forksight::abi
