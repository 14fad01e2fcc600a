// Tests that forksight recognises the lock of a futex wait by glibc's layout, and does not take other words for a lock.
#include "proc/futex_word.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace forksight::proc {
namespace {

constexpr std::uint64_t kAt = 0x1000;
constexpr std::uint64_t kWaitPrivate = 0x80;
constexpr std::uint64_t kWaitBitsetPrivate = 0x189;
constexpr std::uint64_t kJoinWait = 0x109;

struct Scene {
  std::map<std::uint64_t, std::uint64_t> memory;
  std::vector<std::int32_t> tids{100, 101};
  abi::Version libc{2, 36};
  std::uint64_t pc = 0;

  FutexWord identify(std::uint64_t word, std::uint64_t operation, std::uint64_t expected) const {
    Syscall call;
    call.in_syscall = true;
    call.number = 202;
    call.args = {word, operation, expected, 0, 0, 0};
    call.pc = pc;
    const auto read = [&](std::uint64_t address, std::size_t) {
      const auto at = memory.find(address);
      return at == memory.end() ? std::optional<std::uint64_t>(0) : std::optional(at->second);
    };
    const auto lives = [&](std::int32_t tid) { return std::find(tids.begin(), tids.end(), tid) != tids.end(); };
    return identify_word(call, libc, read, lives, lives);
  }
};

Scene mutex(std::uint32_t lock, std::uint32_t owner, std::uint32_t users, std::uint32_t kind) {
  return {{{kAt, lock}, {kAt + 8, owner}, {kAt + 12, users}, {kAt + 16, kind}}};
}

TEST(FutexWord, AnIdAboveTheGreatestThreadIdIsNotAnOwner) {
  EXPECT_EQ(mutex(2, 1U << 22U, 1, 0).identify(kAt, kWaitPrivate, 2).use, model::FutexUse::kMutex);
  EXPECT_EQ(mutex(2, (1U << 22U) + 1, 1, 0).identify(kAt, kWaitPrivate, 2).use, model::FutexUse::kUnknown);
}

TEST(FutexWord, AMutexNamesItsOwner) {
  const FutexWord word = mutex(2, 101, 1, 1).identify(kAt, kWaitPrivate, 2);
  EXPECT_EQ(word.use, model::FutexUse::kMutex);
  EXPECT_EQ(word.owner, 101);
  EXPECT_EQ(word.mutex_type, model::MutexType::kRecursive);
  EXPECT_FALSE(word.owner_is_gone);
}

// A lock that the program implements itself may have the same words as a mutex. A program waits for such a lock with
// syscall(). glibc does not use syscall() for its own locks.
TEST(FutexWord, AWordThatIsWaitedForWithSyscallIsNotAMutex) {
  Scene scene = mutex(2, 101, 1, 0);
  scene.pc = 0x9007;
  scene.memory[0x9000] = 0x48'05'0f'08'24'4c'8b'4c;  // mov 0x8(%rsp),%r9; syscall; cmp ...
  EXPECT_EQ(scene.identify(kAt, kWaitPrivate, 2).use, model::FutexUse::kUnknown);
  scene.memory[0x9000] = 0x48'05'0f'00'00'00'ca'b8;  // mov $0xca,%eax; syscall
  EXPECT_EQ(scene.identify(kAt, kWaitPrivate, 2).use, model::FutexUse::kMutex);
}

TEST(FutexWord, SaysIfTheOwnerDoesNotExist) {
  EXPECT_TRUE(mutex(2, 900, 1, 0).identify(kAt, kWaitPrivate, 2).owner_is_gone);
  EXPECT_TRUE(mutex(2, 900, 1, 0x80).identify(kAt, 0, 2).owner_is_gone);
  EXPECT_FALSE(mutex(2, 101, 1, 0x80).identify(kAt, 0, 2).owner_is_gone);
}

TEST(FutexWord, ARobustMutexHasItsOwnerInTheWord) {
  const std::uint32_t word = 0x80000000U | 101U;
  EXPECT_EQ(mutex(word, 101, 1, 0x10).identify(kAt, 0, word).owner, 101);
  EXPECT_EQ(mutex(word, 100, 1, 0x10).identify(kAt, 0, word).use, model::FutexUse::kUnknown);
}

TEST(FutexWord, WordsThatAMutexCannotHaveAreNotAMutex) {
  EXPECT_EQ(mutex(1, 101, 1, 0).identify(kAt, kWaitPrivate, 1).use, model::FutexUse::kUnknown);
  EXPECT_EQ(mutex(2, 0, 1, 0).identify(kAt, kWaitPrivate, 2).use, model::FutexUse::kUnknown);
  EXPECT_EQ(mutex(2, 101, 0, 0).identify(kAt, kWaitPrivate, 2).use, model::FutexUse::kUnknown);
  EXPECT_EQ(mutex(2, 101, 1, 0x4000).identify(kAt, kWaitPrivate, 2).use, model::FutexUse::kUnknown);
  EXPECT_EQ(mutex(2, 0xf7000000, 1, 0).identify(kAt, kWaitPrivate, 2).use, model::FutexUse::kUnknown);
}

TEST(FutexWord, ThePriorityCeilingInTheLockWordIsIgnored) {
  const std::uint32_t word = 20U << 19U | 2U;
  EXPECT_EQ(mutex(word, 101, 1, 0x40).identify(kAt, kWaitPrivate, word).owner, 101);
  EXPECT_EQ(mutex(word, 101, 1, 0).identify(kAt, kWaitPrivate, word).use, model::FutexUse::kUnknown);
}

// Makes the lock of a FILE. This lock records the address of the owner's struct pthread.
Scene stream(std::uint64_t owner, std::uint32_t tid) {
  Scene scene;
  scene.memory = {{kAt, 2},
                  {kAt + 4, 1},
                  {kAt + 8, owner & 0xffffffffU},
                  {kAt + 12, owner >> 32U},
                  {owner, owner},
                  {owner + 16, owner},
                  {owner + 0x2d0, tid}};
  return scene;
}

TEST(FutexWord, AStreamNamesItsOwnerByAnAddress) {
  const FutexWord word = stream(0x7f00'1000'2000, 101).identify(kAt, kWaitPrivate, 2);
  EXPECT_EQ(word.use, model::FutexUse::kMutex);
  EXPECT_EQ(word.owner, 101);
  EXPECT_EQ(word.lock, kAt);
  EXPECT_FALSE(word.owner_is_gone);
  EXPECT_TRUE(stream(0x7f00'1000'2000, 900).identify(kAt, kWaitPrivate, 2).owner_is_gone);
}

TEST(FutexWord, AStreamWhoseOwnerHasEndedIsUnknown) {
  EXPECT_EQ(stream(0x7f00'1000'2000, 0).identify(kAt, kWaitPrivate, 2).use, model::FutexUse::kUnknown)
      << "the two halves of the owner's address look like words of a mutex";
  EXPECT_EQ(stream(0x7f00'1000'2000, 0xffffffffU).identify(kAt, kWaitPrivate, 2).use, model::FutexUse::kUnknown)
      << "pthread_join() leaves this value in place of the thread id";
}

TEST(FutexWord, ALockOfAnUnknownLibcIsUnknown) {
  Scene scene = mutex(2, 101, 1, 1);
  for (const abi::Version libc : {abi::Version{}, abi::Version{2, 44}}) {
    scene.libc = libc;
    EXPECT_EQ(scene.identify(kAt, kWaitPrivate, 2).use, model::FutexUse::kUnknown);
  }
}

Scene rwlock(std::uint32_t readers, std::uint32_t phase, std::uint32_t writers, std::uint32_t writer) {
  return {{{kAt, readers}, {kAt + 8, phase}, {kAt + 12, writers}, {kAt + 24, writer}}};
}

// The values were measured with glibc 2.36.
TEST(FutexWord, AWaitForARwlockIsForReadingOrWriting) {
  const Scene read_held = rwlock(0xa, 2, 3, 0);
  FutexWord word = read_held.identify(kAt + 8, kWaitBitsetPrivate, 2);
  EXPECT_EQ(word.use, model::FutexUse::kRwlockWrite);
  EXPECT_EQ(word.owner, 0);
  EXPECT_EQ(word.readers, 1U);
  EXPECT_EQ(word.lock, kAt);
  EXPECT_EQ(read_held.identify(kAt + 12, kWaitBitsetPrivate, 3).use, model::FutexUse::kRwlockWrite);
  const Scene write_held = rwlock(0xb, 3, 3, 101);
  word = write_held.identify(kAt + 8, kWaitBitsetPrivate, 3);
  EXPECT_EQ(word.use, model::FutexUse::kRwlockRead);
  EXPECT_EQ(word.owner, 101);
  EXPECT_EQ(write_held.identify(kAt + 12, kWaitBitsetPrivate, 3).use, model::FutexUse::kRwlockWrite);
  EXPECT_EQ(rwlock(0, 2, 0, 0).identify(kAt + 8, kWaitBitsetPrivate, 2).use, model::FutexUse::kUnknown);
}

TEST(FutexWord, AWaitForTheTidOfAThreadIsAJoin) {
  Scene scene;
  scene.memory = {{kAt, kAt}, {kAt + 16, kAt}, {kAt + 720, 101}};
  const FutexWord word = scene.identify(kAt + 720, kJoinWait, 101);
  EXPECT_EQ(word.use, model::FutexUse::kJoin);
  EXPECT_EQ(word.owner, 101);
  EXPECT_EQ(scene.identify(kAt + 720, kJoinWait | 0x80, 101).use, model::FutexUse::kUnknown);
  EXPECT_EQ(scene.identify(kAt + 720, kJoinWait, 102).use, model::FutexUse::kUnknown);
  // In glibc 2.43 pthread_join() waits on another word.
  scene.libc = {2, 43};
  EXPECT_EQ(scene.identify(kAt + 720, kJoinWait, 101).use, model::FutexUse::kUnknown);
  scene.libc = {2, 36};
  scene.memory[kAt + 16] = 5;
  EXPECT_EQ(scene.identify(kAt + 720, kJoinWait, 101).use, model::FutexUse::kUnknown);
}

}  // namespace
}  // namespace forksight::proc
