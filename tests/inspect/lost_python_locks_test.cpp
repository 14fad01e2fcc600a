// A child waits for a lock of Python. The tests show how the analyzer finds the thread that held the lock at the fork.
#include "inspect/lost_python_locks.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>

#include "made_process.hpp"
#include "support/scenes.hpp"

namespace forksight::inspect {
namespace {

using test::kChild;
using test::kHeap;
using test::kHolder;
using test::kMainPointer;
using test::kParent;
using test::MadeProcess;

constexpr std::uint64_t kWorkerPointer = kMainPointer + 0x2000;
constexpr std::uint64_t kLock = kHeap + 0x100;

class LostPythonLock : public testing::Test {
 protected:
  LostPythonLock() : parent_(kParent, 1), child_(kChild, kParent) {
    parent_.add_thread_at(kMainPointer, kParent, {"wait4", "made_main"});
    parent_.add_thread_at(kWorkerPointer, kHolder, {"pause", "made_worker"});
    child_.add_thread_at(kMainPointer, kChild, {"sem_wait", "made_main"}, kHeap + 0x1000);
    set_owner(parent_, kWorkerPointer);
    set_owner(child_, kWorkerPointer);
    call_.kind = CallKind::kPythonLock;
    call_.object = kLock;
    call_.owner_pointer = kWorkerPointer;
  }

  static void set_owner(MadeProcess& process, std::uint64_t owner) {
    process.put(kLock, std::bit_cast<std::array<std::uint8_t, 16>>(std::array<std::uint64_t, 2>{3, owner}));
  }

  std::optional<model::Held> find() {
    subjects_ = test::family(parent_, child_);
    model_ = {};
    model_.processes.resize(2);
    Scene scene(subjects_, model_);
    for (const image::Thread& thread : subjects_[0].image.threads) {
      ThreadFacts facts;
      facts.id = model_.threads.size();
      facts.stack = test::make_stack({"made_worker app"});
      model_.threads.emplace_back().tid = thread.tid;
      model_.threads.back().pointer = thread.fs_base;
      scene.add_facts(0, thread.tid, facts);
    }
    model::Fork fork;
    fork.child = 1;
    for (std::size_t id = 1; id < model_.threads.size(); ++id) fork.lost_threads.push_back(id);
    model_.forks.push_back(fork);
    scene.forks.emplace(1, 0);
    LostThreads lost(scene);
    return find_lost_python_lock(scene, lost, 1, call_, fork);
  }

  MadeProcess parent_;
  MadeProcess child_;
  StuckCall call_;
  std::vector<Subject> subjects_;
  model::Model model_;
};

TEST_F(LostPythonLock, IsHeldByTheThreadThatItNames) {
  const auto held = find();
  ASSERT_TRUE(held);
  EXPECT_EQ(model_.threads[held->holder].tid, kHolder);
  EXPECT_TRUE(held->holder_now.known());
  EXPECT_EQ(model_.locks[held->lock].kind, model::LockKind::kPython);
  EXPECT_EQ(model_.locks[held->lock].address, kLock);
}

TEST_F(LostPythonLock, IsReleasedInTheParentIfTheParentsCopySaysSo) {
  set_owner(parent_, kMainPointer);
  const auto held = find();
  ASSERT_TRUE(held);
  EXPECT_EQ(model_.threads[held->holder].tid, kHolder);
  EXPECT_FALSE(held->holder_now.known());
}

TEST_F(LostPythonLock, HasAnUnknownHolderIfItNamesNone) {
  call_.owner_pointer = 0;
  const auto held = find();
  ASSERT_TRUE(held);
  EXPECT_EQ(model_.threads[held->holder].tid, 0);
  EXPECT_FALSE(held->holder_now.known());
}

// If the child made the lock after the fork, the parent has something else at that address, or nothing.
TEST_F(LostPythonLock, MayHaveBeenFreeIfTheParentHasNoTakenLockThere) {
  call_.owner_pointer = 0;
  EXPECT_FALSE(find()->may_have_been_free);
  for (const std::uint8_t byte : {0, 2, 0x41, 0xff}) {
    parent_.put(kLock, std::array{byte});
    EXPECT_TRUE(find()->may_have_been_free) << int{byte};
  }
  parent_.put(kLock, std::array<std::uint8_t, 1>{1});
  EXPECT_FALSE(find()->may_have_been_free);
  child_.put(kLock - 8, std::array<std::uint8_t, 8>{0x21});
  parent_.put(kLock - 8, std::array<std::uint8_t, 8>{0x31});
  EXPECT_TRUE(find()->may_have_been_free) << "an object of another type";
}

TEST_F(LostPythonLock, HasAnUnknownHolderIfTheParentLacksThatThread) {
  call_.owner_pointer = kWorkerPointer + 0x1000;
  const auto held = find();
  ASSERT_TRUE(held);
  EXPECT_EQ(model_.threads[held->holder].tid, 0);
}

TEST_F(LostPythonLock, IsNotLostIfAThreadOfTheChildHoldsIt) {
  call_.owner_pointer = kMainPointer;
  EXPECT_FALSE(find());
}

}  // namespace
}  // namespace forksight::inspect
