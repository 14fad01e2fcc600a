#include "collect/join_look.hpp"

#include <gtest/gtest.h>

namespace forksight::collect {
namespace {

constexpr std::uint64_t kLock = 0x1000;

model::Stack stack_at(int line) {
  model::Stack stack;
  stack.frames.emplace_back().function = "take";
  stack.frames.back().line = line;
  return stack;
}

// Makes a model of process 10 and its child 20. Thread 11 of process 10 held a lock at the fork. The trace says that
// the child called the lock function at line 5. A later look from outside saw the child's thread at line 7, and thread
// 11 at line 9. Both threads wait for the futex at `word`.
model::Model made(model::LockKind kind, std::uint64_t word) {
  model::Model model;
  model.processes.resize(2);
  model.processes[0].pid = 10;
  model.processes[1].pid = 20;
  model::Thread holder;
  holder.process = 0;
  holder.tid = 11;
  model.threads.push_back(holder);
  model::Lock lock;
  lock.address = kLock;
  lock.kind = kind;
  model.locks.push_back(lock);
  model::Fork fork;
  fork.child = 1;
  fork.held.push_back({});
  model.forks.push_back(fork);
  model::Touch touch;
  touch.process = 1;
  touch.tid = 20;
  touch.kind = kind == model::LockKind::kCondition ? model::TouchKind::kCondition : model::TouchKind::kLock;
  touch.held = 0;
  touch.stack = stack_at(5);
  model.touches.push_back(touch);
  const auto wait = [&](std::int32_t tid, int line) {
    model::Wait one;
    one.tid = tid;
    one.kind = model::WaitKind::kFutex;
    one.object = word;
    one.stack = stack_at(line);
    return one;
  };
  model.processes[1].waits.push_back(wait(20, 7));
  model.processes[0].waits.push_back(wait(11, 9));
  return model;
}

TEST(JoinLook, ATouchThatHasNotReturnedGetsTheStackFromTheLook) {
  model::Model model = made(model::LockKind::kMutex, kLock);
  join_look(model);
  EXPECT_EQ(model.touches[0].stack.frames[0].line, 7);
  EXPECT_FALSE(model.forks[0].held[0].holder_now.known()) << "no look showed that the holder still holds the lock";
}

TEST(JoinLook, ATouchKeepsItsStackIfTheThreadWaitsForAnotherObject) {
  model::Model model = made(model::LockKind::kMutex, kLock + 0x100);
  join_look(model);
  EXPECT_EQ(model.touches[0].stack.frames[0].line, 5);
}

TEST(JoinLook, ATouchThatHasReturnedKeepsItsStack) {
  model::Model model = made(model::LockKind::kMutex, kLock);
  model.touches[0].returned = true;
  join_look(model);
  EXPECT_EQ(model.touches[0].stack.frames[0].line, 5);
}

TEST(JoinLook, AHolderThatStillWaitsGetsTheStackFromTheLook) {
  model::Model model = made(model::LockKind::kCondition, kLock + 40);
  join_look(model);
  ASSERT_TRUE(model.forks[0].held[0].holder_now.known());
  EXPECT_EQ(model.forks[0].held[0].holder_now.frames[0].line, 9);
}

}  // namespace
}  // namespace forksight::collect
