// Tests how the analyzer finds in the memory of a core which thread waits for which. Some of these cores contain wrong
// data.
#include "inspect/core_waits.hpp"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <pthread.h>

#include <algorithm>
#include <limits>
#include <random>

#include "diagnose/diagnose.hpp"
#include "made_process.hpp"

namespace forksight::inspect {
namespace {

using model::FutexUse;
using test::kHeap;
using test::kSharedHeap;
using test::MadeProcess;

constexpr std::int32_t kPid = 4000;
constexpr std::uint32_t kRobust = 0x10;
constexpr std::uint64_t kJoinWait = FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME;

// A core whose threads have the ids kPid, kPid + 1 and so on.
struct MadeCore : MadeProcess {
  MadeCore() : MadeProcess(kPid, 1) { image.is_core = true; }

  void wait(std::int32_t tid, std::uint64_t word) { add_thread(tid, {"pthread_mutex_lock", "made_worker"}, word); }
  void lock(std::uint64_t mutex, std::uint32_t owner) { put_mutex(mutex, 2, owner, 1, 0); }
  void put_mutex(std::uint64_t at, std::uint32_t lock, std::uint32_t owner, std::uint32_t users, std::uint32_t kind) {
    put_word(at, lock);
    put_word(at + 4, 0);
    put_word(at + 8, owner);
    put_word(at + 12, users);
    put_word(at + 16, kind);
    for (std::uint64_t rest = 20; rest < sizeof(pthread_mutex_t); rest += 4) put_word(at + rest, 0);
  }
  // Each thread holds the lock that the thread before it waits for. The last thread waits for the lock of the first.
  void add_ring(std::int32_t count) {
    for (std::int32_t i = 0; i < count; ++i) {
      wait(kPid + i, mutex_of((i + 1) % count));
      lock(mutex_of(i), static_cast<std::uint32_t>(kPid + i));
    }
  }
  void add_join(std::int32_t tid, std::int32_t target, std::uint64_t pointer) {
    image::Thread& thread = add_thread(tid, {"pthread_join", "made_worker"}, pointer + 720);
    thread.call->args[1] = kJoinWait;
    thread.call->args[2] = static_cast<std::uint64_t>(target);
    for (const std::uint64_t self : {pointer, pointer + 16}) {
      put_word(self, static_cast<std::uint32_t>(pointer));
      put_word(self + 4, static_cast<std::uint32_t>(pointer >> 32U));
    }
    put_word(pointer + 720, static_cast<std::uint32_t>(target));
  }
  static std::uint64_t mutex_of(std::int32_t number) {
    return kHeap + 0x1000 + static_cast<std::uint64_t>(number) * 64;
  }

  std::vector<Finding> findings() const {
    Subject subject;
    subject.image = image;
    subject.is_forked = false;
    CoreWaits waits = find_core_waits(image);
    subject.liveness = waits.all_for_good ? model::Liveness::kDeadButForSignal : model::Liveness::kAwake;
    subject.waits = std::move(waits.waits);
    return diagnose(build_model({subject}));
  }
};

std::string rules_of(const MadeCore& core) {
  std::string all;
  for (const Finding& finding : core.findings()) {
    all += (all.empty() ? "" : " ") + finding.rule + (finding.harm == Certainty::kProven ? "!" : "?");
  }
  return all;
}

std::size_t count_stuck(const CoreWaits& found) {
  return static_cast<std::size_t>(std::ranges::count_if(found.waits, [](const auto& wait) { return wait.is_stuck; }));
}

TEST(CoreWaits, ARingOfLocksIsNamed) {
  for (const std::int32_t count : {2, 3, 5}) {
    MadeCore core;
    core.add_ring(count);
    const CoreWaits found = find_core_waits(core.image);
    EXPECT_TRUE(found.all_for_good);
    ASSERT_EQ(found.waits.size(), static_cast<std::size_t>(count));
    EXPECT_EQ(found.waits[0].use, FutexUse::kMutex);
    EXPECT_EQ(found.waits[0].owner, kPid + 1);
    ASSERT_EQ(found.waits[0].wakers.size(), 1U);
    EXPECT_EQ(found.waits[0].wakers[0].tid, kPid + 1);
    EXPECT_EQ(rules_of(core), "lock-cycle!") << count;
  }
}

TEST(CoreWaits, ARingBesideThreadsThatGoOnIsNamedAndTheyAreNotStuck) {
  MadeCore core;
  core.add_ring(2);
  core.wait(kPid + 2, MadeCore::mutex_of(0));  // waits for a lock of the ring
  core.add_thread(kPid + 3, {"poll", "made_main"});
  const CoreWaits found = find_core_waits(core.image);
  EXPECT_FALSE(found.all_for_good);
  EXPECT_EQ(count_stuck(found), 3U);
  EXPECT_FALSE(found.waits[3].is_stuck);
  EXPECT_EQ(rules_of(core), "lock-cycle!");
}

TEST(CoreWaits, AQueueBehindAThreadThatGoesOnIsNoRing) {
  MadeCore core;
  core.add_thread(kPid, {"poll", "made_main"});
  core.wait(kPid + 1, MadeCore::mutex_of(0));
  core.wait(kPid + 2, MadeCore::mutex_of(1));
  core.lock(MadeCore::mutex_of(0), kPid);
  core.lock(MadeCore::mutex_of(1), kPid + 1);
  const CoreWaits found = find_core_waits(core.image);
  EXPECT_FALSE(found.all_for_good);
  EXPECT_EQ(count_stuck(found), 0U);
  EXPECT_EQ(rules_of(core), "");
}

TEST(CoreWaits, AWaitWithATimeoutIsNoPartOfARing) {
  MadeCore core;
  core.add_ring(2);
  core.image.threads.back().call->args[3] = kHeap;
  EXPECT_EQ(count_stuck(find_core_waits(core.image)), 0U);
  EXPECT_EQ(rules_of(core), "");
}

TEST(CoreWaits, AThreadThatWaitsForItselfIsNamed) {
  MadeCore core;
  core.wait(kPid, MadeCore::mutex_of(0));
  core.lock(MadeCore::mutex_of(0), kPid);
  EXPECT_EQ(rules_of(core), "self-deadlock!");
}

TEST(CoreWaits, AnUpgradeOfARwlockIsNamed) {
  MadeCore core;
  const std::uint64_t lock = MadeCore::mutex_of(0);
  core.wait(kPid, lock + 8);
  for (std::uint64_t at = lock; at < lock + 56; at += 4) core.put_word(at, 0);
  core.put_word(lock, 0xa);
  core.put_word(lock + 8, 2);
  EXPECT_EQ(rules_of(core), "rwlock-upgrade!");
}

TEST(CoreWaits, ARingOfJoinsIsNamed) {
  MadeCore core;
  core.add_join(kPid, kPid + 1, kHeap + 0x4000);
  core.add_join(kPid + 1, kPid, kHeap + 0x5000);
  const CoreWaits found = find_core_waits(core.image);
  EXPECT_TRUE(found.all_for_good);
  EXPECT_EQ(found.waits[0].use, FutexUse::kJoin);
  EXPECT_EQ(rules_of(core), "join-cycle!");
}

TEST(CoreWaits, AnOwnerThatIsNotInTheCoreProvesNoRing) {
  MadeCore core;
  core.add_ring(2);
  core.lock(MadeCore::mutex_of(0), 999'999);
  const CoreWaits found = find_core_waits(core.image);
  EXPECT_TRUE(found.waits[1].owner_is_gone);
  ASSERT_EQ(found.waits[1].wakers.size(), 1U);
  EXPECT_EQ(found.waits[1].wakers[0].tid, 0);
  EXPECT_EQ(rules_of(core).find("cycle"), std::string::npos);
}

// The owner of a lock in shared memory may be a thread of another process. So a core does not show whether the owner is
// alive. If a thread of the core has the owner's id, the core does not show either whether this thread is the owner.
TEST(CoreWaits, ASharedLockProvesNothing) {
  for (const std::uint32_t owner : {std::uint32_t{999'999}, static_cast<std::uint32_t>(kPid)}) {
    MadeCore core;
    image::Thread& thread = core.add_thread(kPid, {"pthread_mutex_lock", "made_worker"}, kSharedHeap);
    thread.call->args[1] = FUTEX_WAIT;
    core.put_mutex(kSharedHeap, 2, owner, 1, 0x80);
    core.image.mappings[1].path = "/dev/shm/queue";
    const CoreWaits found = find_core_waits(core.image);
    EXPECT_FALSE(found.all_for_good);
    EXPECT_TRUE(found.waits[0].is_shared);
    EXPECT_FALSE(found.waits[0].owner_is_gone);
    EXPECT_FALSE(found.waits[0].wakers_known);
    EXPECT_EQ(found.waits[0].owner, static_cast<std::int32_t>(owner));
    EXPECT_EQ(found.waits[0].path, "/dev/shm/queue");
    EXPECT_EQ(rules_of(core), "");
  }
}

TEST(CoreWaits, ARobustMutexInPrivateMemoryHasItsOwnerInItsWord) {
  MadeCore core;
  for (std::int32_t i = 0; i < 2; ++i) {
    image::Thread& thread = core.add_thread(kPid + i, {"pthread_mutex_lock", "made_worker"}, MadeCore::mutex_of(1 - i));
    const auto own = static_cast<std::uint32_t>(kPid + i);
    thread.call->args[1] = FUTEX_WAIT;
    thread.call->args[2] = FUTEX_WAITERS | static_cast<std::uint32_t>(kPid + 1 - i);
    core.put_mutex(MadeCore::mutex_of(i), FUTEX_WAITERS | own, own, 1, kRobust);
  }
  EXPECT_EQ(rules_of(core), "lock-cycle!");
}

TEST(CoreWaits, FutexWordsAtTheEndsOfMemoryHaveNoKnownUse) {
  for (const std::uint64_t word : {std::uint64_t{1}, std::uint64_t{4}, std::numeric_limits<std::uint64_t>::max(),
                                   std::numeric_limits<std::uint64_t>::max() - 3, kHeap + test::kHeapBytes - 2}) {
    MadeCore core;
    core.wait(kPid, word);
    core.add_join(kPid + 1, kPid, kHeap + 0x4000);
    core.image.threads.back().call->args[0] = word;
    const CoreWaits found = find_core_waits(core.image);
    EXPECT_EQ(found.waits[0].use, FutexUse::kUnknown);
    EXPECT_EQ(found.waits[1].use, FutexUse::kUnknown);
  }
}

// Locks have random owners, threads wait for random locks or for themselves, and thread ids may occur twice. The
// analyzer must give an answer. It must not say that a thread is stuck because of a thread that does not exist.
TEST(CoreWaits, RandomMemoryGetsAnAnswer) {
  constexpr int kRounds = 300;
  for (int round = 0; round < kRounds; ++round) {
    std::minstd_rand engine(static_cast<std::uint32_t>(round) + 1);
    const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(engine() % limit); };
    const auto tid = [&] { return kPid + static_cast<std::int32_t>(below(8)); };
    const auto mutex = [&] { return MadeCore::mutex_of(static_cast<std::int32_t>(below(8))); };
    MadeCore core;
    const std::uint32_t count = 1 + below(8);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t owners[] = {static_cast<std::uint32_t>(tid()), 0, 0x8000'0000U, 0xffff'ffffU, 1};
      const std::uint32_t kind = below(4) == 0 ? below(0x1000) : 0;
      core.put_mutex(mutex(), 2, owners[below(5)], below(3), kind);
      core.wait(tid(), mutex() + below(2) * 8);
      core.image.threads.back().call->args[1] = below(2) == 0 ? 0x80U : below(16);
      if (below(4) == 0) core.image.threads.back().call->args[2] = static_cast<std::uint32_t>(tid());
    }
    const CoreWaits found = find_core_waits(core.image);
    ASSERT_EQ(found.waits.size(), core.image.threads.size());
    for (const model::Wait& wait : found.waits) {
      if (!wait.is_stuck) continue;
      for (const model::Waker& waker : wait.wakers) {
        EXPECT_TRUE(waker.tid == 0 || core.image.find_own(waker.tid) != nullptr);
      }
    }
    core.findings();
  }
}

}  // namespace
}  // namespace forksight::inspect
