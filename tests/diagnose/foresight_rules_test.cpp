// What has not happened: orders of locks, and locks that a child took by luck.
#include <gtest/gtest.h>

#include <map>

#include "diagnose/diagnose.hpp"
#include "diagnose/lock_orders.hpp"
#include "forksight/trace/foresight.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

using model::LockOrder;
using test::TraceBuilder;
using trace::LockKind;
using trace::RecordType;

// Threads of one process, and pairs of locks that they took. Locks go by their numbers.
struct Orders {
  Orders() { model.processes.emplace_back().pid = test::kParent; }

  model::LifeId life(std::uint64_t born, std::optional<model::LifeId> creator = {}, std::uint64_t joined = 0) {
    model.lives.push_back({0, creator, born, joined});
    model::Thread thread;
    thread.tid = static_cast<std::int32_t>(test::kParent + model.threads.size());
    model.threads.push_back(thread);
    return model.lives.size() - 1;
  }

  LockOrder& add(model::LifeId life, std::uint64_t held, std::uint64_t taken, std::uint64_t at = 100) {
    LockOrder order;
    order.life = life;
    order.thread = life;
    order.held_as.number = held;
    order.taken_as.number = taken;
    order.held = lock(held);
    order.taken = lock(taken);
    order.first = order.last = at;
    model.lock_orders.push_back(order);
    return model.lock_orders.back();
  }

  model::LockId lock(std::uint64_t number) {
    while (model.locks.size() <= number) {
      model::Lock lock;
      lock.address = 0x1000 + model.locks.size() * 64;
      lock.name = std::string("lock_") + static_cast<char>('a' + model.locks.size());
      lock.module = "/opt/app";
      model.locks.push_back(lock);
    }
    return number;
  }

  std::size_t rings() const { return orders::find_rings(model).found.size(); }

  model::Model model;
};

TEST(LockOrderInversion, IsARingOfTwoThreads) {
  Orders scene;
  const auto one = scene.life(1);
  const auto other = scene.life(2, one);
  scene.add(one, 1, 2).times = 3;
  scene.add(other, 2, 1);
  const auto findings = diagnose(scene.model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "lock-order-inversion");
  EXPECT_EQ(findings[0].certainty, Certainty::kPossible);
  EXPECT_EQ(findings[0].outcome, Outcome::kMayHang);
  EXPECT_EQ(findings[0].culprit.name, "lock_b (mutex)");
  EXPECT_NE(findings[0].summary.find("may hang between lock_b and lock_c"), std::string::npos) << findings[0].summary;
  EXPECT_NE(findings[0].chain[0].find("(3 times)"), std::string::npos) << findings[0].chain[0];
}

TEST(LockOrderInversion, IsToldOnceHoweverManyThreadsDoIt) {
  Orders scene;
  const auto first = scene.life(1);
  scene.add(first, 1, 2);
  for (std::uint64_t i = 2; i < 30; ++i) {
    const auto life = scene.life(i, first);
    scene.add(life, i % 2 == 0 ? 2 : 1, i % 2 == 0 ? 1 : 2);
  }
  EXPECT_EQ(scene.rings(), 1U);
}

TEST(LockOrderInversion, NeedsAnotherThreadForEachLink) {
  Orders scene;
  const auto one = scene.life(1);
  const auto other = scene.life(2, one);
  scene.add(one, 1, 2);
  scene.add(one, 2, 1);
  scene.add(other, 3, 4);
  EXPECT_EQ(scene.rings(), 0U);
  // A ring of three by two.
  scene.add(other, 2, 3);
  scene.add(one, 3, 1);
  EXPECT_EQ(scene.rings(), 0U);
  scene.add(scene.life(3, one), 3, 1);
  EXPECT_EQ(scene.rings(), 1U);
}

TEST(LockOrderInversion, OfMoreLocksIsFoundAndNotToldTwice) {
  Orders scene;
  const auto one = scene.life(1);
  scene.add(one, 1, 2);
  scene.add(scene.life(2, one), 2, 3);
  scene.add(scene.life(3, one), 3, 1);
  ASSERT_EQ(scene.rings(), 1U);
  EXPECT_EQ(orders::find_rings(scene.model).found[0].size(), 3U);
  // The shorter one says it all.
  scene.add(scene.life(4, one), 2, 1);
  ASSERT_EQ(scene.rings(), 1U);
  EXPECT_EQ(orders::find_rings(scene.model).found[0].size(), 2U);
}

TEST(LockOrderInversion, AMazeOfOrdersIsGivenUpAndSaysSo) {
  Orders scene;
  const auto first = scene.life(1);
  constexpr std::uint64_t kLocks = 50;
  for (std::uint64_t held = 1; held < kLocks; ++held) {
    for (std::uint64_t taken = held + 1; taken <= kLocks; ++taken) scene.add(scene.life(2, first), held, taken);
  }
  EXPECT_FALSE(orders::find_rings(scene.model).is_complete);
  scene.add(first, kLocks, kLocks - 1);
  EXPECT_EQ(scene.rings(), 1U) << "short ones come first";
  EXPECT_EQ(conclude(scene.model).size(), 1U);
  ASSERT_EQ(scene.model.limits.size(), 1U);
  EXPECT_TRUE(scene.model.limits[0].starts_with("1226 orders of locks: the search for rings")) << scene.model.limits[0];
}

TEST(LockOrderInversion, AGateKeepsThemApartUnlessBothReadIt) {
  for (const bool first_reads : {false, true}) {
    for (const bool second_reads : {false, true}) {
      Orders scene;
      const auto one = scene.life(1);
      const auto other = scene.life(2, one);
      scene.add(one, 1, 2).gates = {{9, first_reads}};
      scene.add(other, 2, 1).gates = {{8, false}, {9, second_reads}};
      EXPECT_EQ(scene.rings(), first_reads && second_reads ? 1U : 0U);
    }
  }
}

TEST(LockOrderInversion, ReadersDoNotWaitForReaders) {
  for (int writer = 0; writer < 3; ++writer) {
    Orders scene;
    const auto one = scene.life(1);
    const auto other = scene.life(2, one);
    scene.add(one, 1, 2).held_as.shared = writer != 1;
    scene.add(other, 2, 1).taken_as.shared = writer != 2;
    EXPECT_EQ(scene.rings(), writer == 0 ? 0U : 1U);
  }
}

TEST(LockOrderInversion, WhatWasOverBeforeTheOtherBeganIsApart) {
  Orders scene;
  const auto one = scene.life(1);
  const auto made_later = scene.life(10, one);
  scene.add(one, 1, 2, 9);
  scene.add(made_later, 2, 1, 20);
  EXPECT_EQ(scene.rings(), 0U) << "its maker did it before";
  scene.model.lock_orders[0].last = 10;
  EXPECT_EQ(scene.rings(), 1U) << "and once more after";

  Orders grandchild;
  const auto root = grandchild.life(1);
  const auto between = grandchild.life(5, root);
  grandchild.add(root, 1, 2, 4);
  grandchild.add(grandchild.life(10, between), 2, 1, 20);
  EXPECT_EQ(grandchild.rings(), 0U);

  Orders joined;
  const auto maker = joined.life(1);
  joined.add(joined.life(2, maker, 5), 1, 2, 4);
  joined.add(joined.life(6, maker), 2, 1, 7);
  EXPECT_EQ(joined.rings(), 0U) << "joined before the other was made";
  joined.model.lives[1].joined = 8;
  EXPECT_EQ(joined.rings(), 1U);

  Orders after_join;
  const auto main = after_join.life(1);
  after_join.add(after_join.life(2, main, 5), 1, 2, 4);
  after_join.add(main, 2, 1, 5);
  EXPECT_EQ(after_join.rings(), 0U) << "begun after the join";
  after_join.model.lock_orders[1].first = 4;
  EXPECT_EQ(after_join.rings(), 1U);
}

TEST(LockOrderInversion, ProcessesAreApart) {
  Orders scene;
  scene.model.processes.emplace_back();
  const auto one = scene.life(1);
  const auto other = scene.life(2);
  scene.model.lives[other].process = 1;
  scene.add(one, 1, 2);
  scene.add(other, 2, 1);
  EXPECT_EQ(scene.rings(), 0U);
}

TEST(LockOrderInversion, EndsOnAGraphOfVeryManyOrders) {
  Orders scene;
  const auto root = scene.life(1);
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto life = scene.life(i + 2, root);
    for (std::uint64_t held = 0; held < 25; ++held) scene.add(life, held, (held + i + 1) % 25);
  }
  EXPECT_GE(scene.rings(), 1U);
}

TEST(LockOrderInversion, ALifeThatIsItsOwnAncestorIsNoEndlessLoop) {
  Orders scene;
  const auto one = scene.life(1);
  const auto other = scene.life(2, 1);
  scene.model.lives[one].creator = one;
  scene.add(one, 1, 2);
  scene.add(other, 2, 1);
  EXPECT_LE(scene.rings(), 1U);
}

// --- the records

trace::LockOrderRecord order_record(std::uint64_t life, std::uint64_t thread, std::uint64_t held, std::uint64_t taken) {
  trace::LockOrderRecord record{};
  record.life = life;
  record.thread = thread;
  record.held = 0x1000 + held * 64;
  record.taken = 0x1000 + taken * 64;
  record.held_number = held;
  record.taken_number = taken;
  record.first = record.last = 100;
  record.times = 1;
  record.held_kind = record.taken_kind = static_cast<std::uint32_t>(LockKind::kMutex);
  return record;
}

struct OrderTrace {
  OrderTrace() {
    trace.as(test::kParent);
    thread = trace.thread(test::kParent, "main");
    other_thread = trace.thread(test::kHolder, "worker");
    life = trace.record(RecordType::kThreadLife, trace::ThreadLifeRecord{0, 1, 0, 0});
    other_life = trace.record(RecordType::kThreadLife, trace::ThreadLifeRecord{life, 2, 0, 0});
  }
  TraceBuilder trace;
  std::uint64_t thread = 0;
  std::uint64_t other_thread = 0;
  std::uint64_t life = 0;
  std::uint64_t other_life = 0;
};

TEST(LockOrderRecords, BecomeARing) {
  OrderTrace scene;
  scene.trace.record(RecordType::kLockOrder, order_record(scene.life, scene.thread, 1, 2));
  scene.trace.record(RecordType::kLockOrder, order_record(scene.other_life, scene.other_thread, 2, 1));
  const auto findings = diagnose(test::read_model(scene.trace));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "lock-order-inversion");
  EXPECT_EQ(findings[0].culprit.address, 0x1040U);
}

TEST(LockOrderRecords, ThatMakeNoSenseAreLeftOut) {
  OrderTrace scene;
  auto gates = order_record(scene.life, scene.thread, 1, 2);
  gates.gates = 0xffff'ffff;  // more than its tail has
  scene.trace.record(RecordType::kLockOrder, gates);
  auto kind = order_record(scene.life, scene.thread, 1, 2);
  kind.held_kind = 77;
  scene.trace.record(RecordType::kLockOrder, kind);
  scene.trace.record(RecordType::kLockOrder, order_record(scene.thread, scene.thread, 1, 2));
  scene.trace.record(RecordType::kLockOrder, order_record(0, scene.thread, 1, 2));
  scene.trace.record(RecordType::kLockOrder, order_record(scene.life, scene.thread, 3, 3));
  scene.trace.as(4711);
  scene.trace.record(RecordType::kLockOrder, order_record(scene.life, scene.thread, 1, 2));
  EXPECT_TRUE(test::read_model(scene.trace).lock_orders.empty());
}

// --- racy-orphan

struct RacyTrace {
  RacyTrace() {
    trace.as(test::kParent);
    holder = trace.thread(test::kHolder, "worker");
    trace::ForkRecord fixed{};
    fixed.ordinal = 1;
    fork = trace.fork(fixed, {holder}, {});
    trace.record(RecordType::kForked, trace::ForkedRecord{fork, test::kChild, 0, 5});
  }
  void touch(std::uint64_t held_ticks, std::uint64_t window_ticks, std::int32_t pid = test::kChild) {
    trace.as(pid);
    trace::RacyTouchRecord record{};
    record.fork = fork;
    record.lock = test::kLockAddress;
    record.holder = holder;
    record.held_ticks = held_ticks;
    record.window_ticks = window_ticks;
    record.window_ns = 2'000'000'000;
    record.times = 7;
    record.threads = 2;
    record.kind = static_cast<std::uint32_t>(LockKind::kMutex);
    trace.record(RecordType::kRacyTouch, record);
  }
  std::vector<Finding> findings() const { return diagnose(test::read_model(trace)); }
  TraceBuilder trace;
  std::uint64_t holder = 0;
  std::uint64_t fork = 0;
};

TEST(RacyOrphan, IsPossibleWithTheOdds) {
  RacyTrace scene;
  scene.touch(31, 1000);
  const auto findings = scene.findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "racy-orphan");
  EXPECT_EQ(findings[0].certainty, Certainty::kPossible);
  EXPECT_EQ(findings[0].outcome, Outcome::kMayHang);
  EXPECT_NE(findings[0].summary.find("hold it 3.1 % of the time, so about one fork in 32 hangs"), std::string::npos)
      << findings[0].summary;
  EXPECT_NE(findings[0].chain[1].find("\"worker\" and 1 thread more"), std::string::npos) << findings[0].chain[1];
  EXPECT_NE(findings[0].chain[2].find("7 times and had it 3.1 % of the 2.0 s"), std::string::npos)
      << findings[0].chain[2];
  ASSERT_TRUE(findings[0].culprit.holder);
  EXPECT_EQ(findings[0].culprit.holder->tid, test::kHolder);
}

TEST(RacyOrphan, ShareIsAShare) {
  const std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> cases{
      {{500, 1000}, "50 % of the time, so about one fork in 2 hangs"},
      {{5000, 1000}, "100 % of the time, so most forks hang"},
      {{1, 1'000'000}, "0.0001 % of the time, so about one fork in 1000000 hangs"},
  };
  for (const auto& [ticks, words] : cases) {
    RacyTrace scene;
    scene.touch(ticks.first, ticks.second);
    ASSERT_EQ(scene.findings().size(), 1U);
    EXPECT_NE(scene.findings()[0].summary.find(words), std::string::npos) << scene.findings()[0].summary;
  }
}

TEST(RacyOrphan, IsSilentWithoutATime) {
  RacyTrace scene;
  scene.touch(0, 1000);
  scene.touch(10, 0);
  EXPECT_TRUE(scene.findings().empty());
}

TEST(RacyOrphan, IsNotToldBesideAHangAtTheSameLock) {
  test::LockTrace hung{test::LockScene{}};
  hung.touch(trace::TouchKind::kLock);
  trace::RacyTouchRecord record{};
  record.fork = hung.fork;
  record.lock = test::kLockAddress;
  hung.trace.as(test::kParent);
  record.holder = hung.trace.thread(test::kHolder + 1, "other");
  record.held_ticks = 1;
  record.window_ticks = 2;
  record.kind = static_cast<std::uint32_t>(LockKind::kMutex);
  hung.trace.as(test::kChild);
  hung.trace.record(RecordType::kRacyTouch, record);
  const auto findings = diagnose(test::read_model(hung.trace));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "orphaned-mutex");
}

}  // namespace
}  // namespace forksight
