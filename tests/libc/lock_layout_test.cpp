// Tests that the layouts are those of this machine's libc. The tests bring real locks into each state, and decode their
// bytes.
#include "libc/lock_layout.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <thread>

#include "support/scenes.hpp"
#include "support/this_libc.hpp"

namespace forksight::libc {
namespace {

constexpr abi::Libc k236{{2, 36}, abi::ConditionKind::kWithReferences};
constexpr abi::Libc k242{{2, 42}, abi::ConditionKind::kWithoutReferences};

template <class T>
LockState decode(model::LockKind kind, const T& lock) {
  std::uint8_t bytes[sizeof(T)];
  std::memcpy(bytes, &lock, sizeof lock);
  const auto state = decode_lock(kind, bytes, test::this_libc());
  EXPECT_TRUE(state.has_value());
  return state.value_or(LockState{});
}

std::int32_t own_tid() { return static_cast<std::int32_t>(::syscall(SYS_gettid)); }

struct MutexCase {
  const char* name;
  int type;
  int robust;
  int protocol;
  int shared;
  model::MutexType expected;
};

class RealMutex : public testing::TestWithParam<MutexCase> {};

TEST_P(RealMutex, IsDecoded) {
  const MutexCase& about = GetParam();
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  ASSERT_EQ(pthread_mutexattr_settype(&attributes, about.type), 0);
  ASSERT_EQ(pthread_mutexattr_setrobust(&attributes, about.robust), 0);
  ASSERT_EQ(pthread_mutexattr_setprotocol(&attributes, about.protocol), 0);
  ASSERT_EQ(pthread_mutexattr_setpshared(&attributes, about.shared), 0);
  pthread_mutex_t mutex;
  ASSERT_EQ(pthread_mutex_init(&mutex, &attributes), 0);

  EXPECT_FALSE(decode(model::LockKind::kMutex, mutex).held);
  ASSERT_EQ(pthread_mutex_lock(&mutex), 0);
  const LockState held = decode(model::LockKind::kMutex, mutex);
  EXPECT_TRUE(held.held);
  EXPECT_EQ(held.owner, own_tid());
  EXPECT_EQ(held.type, about.expected);
  EXPECT_EQ(held.robust, about.robust == PTHREAD_MUTEX_ROBUST);
  EXPECT_EQ(held.priority_inherit, about.protocol == PTHREAD_PRIO_INHERIT);
  EXPECT_EQ(held.process_shared, about.shared == PTHREAD_PROCESS_SHARED && !held.robust);
  ASSERT_EQ(pthread_mutex_unlock(&mutex), 0);
  EXPECT_FALSE(decode(model::LockKind::kMutex, mutex).held);
  pthread_mutex_destroy(&mutex);
  pthread_mutexattr_destroy(&attributes);
}

constexpr int kPrivate = PTHREAD_PROCESS_PRIVATE;
INSTANTIATE_TEST_SUITE_P(
    Kinds, RealMutex,
    testing::Values(MutexCase{"normal", PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE, kPrivate,
                              model::MutexType::kNormal},
                    MutexCase{"recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE, kPrivate,
                              model::MutexType::kRecursive},
                    MutexCase{"errorcheck", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE,
                              kPrivate, model::MutexType::kErrorcheck},
                    MutexCase{"robust", PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE, kPrivate,
                              model::MutexType::kNormal},
                    MutexCase{"pi", PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT, kPrivate,
                              model::MutexType::kNormal},
                    MutexCase{"shared", PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE,
                              PTHREAD_PROCESS_SHARED, model::MutexType::kNormal},
                    MutexCase{"all", PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_INHERIT,
                              PTHREAD_PROCESS_SHARED, model::MutexType::kRecursive}),
    [](const auto& about) { return about.param.name; });

// The test does not lock the mutex, because only a thread with a real-time policy can lock such a mutex.
TEST(CeilingMutex, IsFreeWithTheCeilingInItsLock) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  ASSERT_EQ(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_PROTECT), 0);
  pthread_mutex_t mutex;
  ASSERT_EQ(pthread_mutex_init(&mutex, &attributes), 0);
  EXPECT_NE(mutex.__data.__lock, 0);
  EXPECT_FALSE(decode(model::LockKind::kMutex, mutex).held);
  pthread_mutex_destroy(&mutex);
  pthread_mutexattr_destroy(&attributes);
}

TEST(RealRwlock, IsDecoded) {
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  EXPECT_FALSE(decode(model::LockKind::kRwlockRead, lock).held);
  EXPECT_FALSE(decode(model::LockKind::kRwlockWrite, lock).held);
  ASSERT_EQ(pthread_rwlock_rdlock(&lock), 0);
  EXPECT_TRUE(decode(model::LockKind::kRwlockRead, lock).held);
  EXPECT_FALSE(decode(model::LockKind::kRwlockWrite, lock).held);
  pthread_rwlock_unlock(&lock);
  EXPECT_FALSE(decode(model::LockKind::kRwlockRead, lock).held);
  ASSERT_EQ(pthread_rwlock_wrlock(&lock), 0);
  const LockState written = decode(model::LockKind::kRwlockWrite, lock);
  EXPECT_TRUE(written.held);
  EXPECT_EQ(written.owner, own_tid());
  EXPECT_FALSE(written.process_shared);
  pthread_rwlock_unlock(&lock);
  EXPECT_FALSE(decode(model::LockKind::kRwlockWrite, lock).held);

  pthread_rwlockattr_t attributes;
  pthread_rwlockattr_init(&attributes);
  pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_rwlock_t shared;
  pthread_rwlock_init(&shared, &attributes);
  EXPECT_TRUE(decode(model::LockKind::kRwlockRead, shared).process_shared);
}

TEST(RealSpinlock, IsDecoded) {
  pthread_spinlock_t lock;
  pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
  const auto held = [&] {
    const int value = lock;  // pthread_spinlock_t is a volatile int
    return decode(model::LockKind::kSpinlock, value).held;
  };
  EXPECT_FALSE(held());
  pthread_spin_lock(&lock);
  EXPECT_TRUE(held());
  pthread_spin_unlock(&lock);
  EXPECT_FALSE(held());
}

TEST(RealSemaphore, IsDecoded) {
  sem_t semaphore;
  sem_init(&semaphore, 0, 1);
  EXPECT_FALSE(decode(model::LockKind::kSemaphore, semaphore).held);
  sem_wait(&semaphore);
  EXPECT_TRUE(decode(model::LockKind::kSemaphore, semaphore).held);
  EXPECT_FALSE(decode(model::LockKind::kSemaphore, semaphore).process_shared);
  sem_destroy(&semaphore);
  sem_init(&semaphore, 1, 1);
  EXPECT_TRUE(decode(model::LockKind::kSemaphore, semaphore).process_shared);
}

TEST(DecodeLock, TooFewBytesGiveNoState) {
  const std::vector<std::uint8_t> bytes(56);
  EXPECT_FALSE(decode_lock(model::LockKind::kMutex, std::span(bytes).first(39), k236).has_value());
  EXPECT_FALSE(decode_lock(model::LockKind::kRwlockRead, std::span(bytes).first(55), k236).has_value());
  EXPECT_FALSE(decode_lock(model::LockKind::kSpinlock, std::span(bytes).first(3), k236).has_value());
  EXPECT_FALSE(decode_lock(model::LockKind::kSemaphore, std::span(bytes).first(11), k236).has_value());
  EXPECT_FALSE(decode_lock(model::LockKind::kBarrier, std::span(bytes).first(19), k236).has_value());
  EXPECT_FALSE(decode_lock(model::LockKind::kCondition, std::span(bytes).first(47), k236).has_value());
  EXPECT_FALSE(decode_lock(static_cast<model::LockKind>(77), bytes, k236).has_value());
}

// Decodes the same words by both layouts. The words are right for the new layout, and mean something else in the old
// layout.
TEST(DecodeLock, ConditionsOfGlibc241HaveTheirWaitersElsewhere) {
  std::array<std::uint32_t, 12> words{};
  words[0] = 4U << 1U;  // wseq: four threads have begun to wait
  words[7] = 2U << 3U;  // wrefs: two threads are in the wait
  std::array<std::uint8_t, 48> memory{};
  std::memcpy(memory.data(), words.data(), sizeof words);
  const auto state = decode_lock(model::LockKind::kCondition, memory, k242);
  ASSERT_TRUE(state.has_value());
  EXPECT_TRUE(state->held);
  EXPECT_EQ(state->waiters, 2U);
  EXPECT_EQ(decode_lock(model::LockKind::kCondition, memory, k236)->waiters, 0U);
}

TEST(DecodeLock, ALockOfAnUnknownLibcGivesNoState) {
  const std::vector<std::uint8_t> bytes(56);
  for (const abi::Version version : {abi::Version{}, abi::Version{2, 27}, abi::Version{2, 44}, abi::Version{3, 36}}) {
    const abi::Libc libc{version, abi::ConditionKind::kUnknown};
    for (const auto kind : {model::LockKind::kMutex, model::LockKind::kRwlockRead, model::LockKind::kRwlockWrite,
                            model::LockKind::kSpinlock, model::LockKind::kSemaphore, model::LockKind::kBarrier,
                            model::LockKind::kCondition}) {
      EXPECT_FALSE(decode_lock(kind, bytes, libc).has_value()) << static_cast<int>(kind);
    }
    EXPECT_TRUE(decode_lock(model::LockKind::kGuard, bytes, libc).has_value()) << "not of glibc";
  }
}

TEST(DecodeLock, WaitersAloneDoNotHoldARobustMutex) {
  const auto state = decode_lock(model::LockKind::kMutex, test::mutex_memory(0x10, 0, 0x8000'0000), k236);
  ASSERT_TRUE(state.has_value());
  EXPECT_FALSE(state->held);
}

TEST(RealCondition, CountsItsWaiters) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  bool waits = false;
  bool may_go = false;
  EXPECT_FALSE(decode(model::LockKind::kCondition, condition).held);
  std::thread waiter([&] {
    pthread_mutex_lock(&mutex);
    waits = true;
    while (!may_go) pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
  });
  for (bool is_inside = false; !is_inside; std::this_thread::yield()) {
    pthread_mutex_lock(&mutex);
    is_inside = waits;
    pthread_mutex_unlock(&mutex);
  }
  const LockState state = decode(model::LockKind::kCondition, condition);
  EXPECT_TRUE(state.held);
  EXPECT_EQ(state.waiters, 1U);
  EXPECT_FALSE(state.process_shared);
  pthread_mutex_lock(&mutex);
  may_go = true;
  pthread_cond_broadcast(&condition);
  pthread_mutex_unlock(&mutex);
  waiter.join();
  EXPECT_FALSE(decode(model::LockKind::kCondition, condition).held);
}

TEST(Barrier, CountsThreadsThatHaveNotLeftWhileItIsDestroyed) {
  // One of three threads has arrived, and pthread_barrier_destroy() has begun.
  std::array<std::uint32_t, 5> words{1, 0, 3, 0, 0x7fffffff - 0x7fffffff % 3 - 1};
  const auto state = decode(model::LockKind::kBarrier, words);
  EXPECT_TRUE(state.held);
  EXPECT_EQ(state.waiters, 1U);
}

TEST(RealBarrier, CountsItsArrivals) {
  pthread_barrier_t barrier;
  ASSERT_EQ(pthread_barrier_init(&barrier, nullptr, 2), 0);
  EXPECT_FALSE(decode(model::LockKind::kBarrier, barrier).held);
  std::thread one([&] { pthread_barrier_wait(&barrier); });
  while (!decode(model::LockKind::kBarrier, barrier).held) std::this_thread::yield();
  EXPECT_EQ(decode(model::LockKind::kBarrier, barrier).waiters, 1U);
  pthread_barrier_wait(&barrier);
  one.join();
  EXPECT_FALSE(decode(model::LockKind::kBarrier, barrier).held);
  pthread_barrier_destroy(&barrier);
}

}  // namespace
}  // namespace forksight::libc
