// Tests findings about hangs that have not happened yet, but may happen, because threads took locks in opposite orders.
#include <gtest/gtest.h>

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

// Threads of one process, and the pairs of locks that they took. A number stands for each lock.
//
// Times are moments. A process counts the creations and joins of its threads. The moment of a thread is the count when
// the thread began, or when it last made or joined another thread (model/foresight.hpp).
struct Orders {
  Orders() { model.processes.emplace_back().pid = test::kParent; }

  model::LifeId life(std::uint64_t born, std::optional<model::LifeId> creator = {}, std::uint64_t joined = 0,
                     std::optional<model::LifeId> joiner = {}) {
    model.lives.push_back({0, creator, born, joiner, joined, true});
    model::Thread thread;
    thread.tid = static_cast<std::int32_t>(test::kParent + model.threads.size());
    model.threads.push_back(thread);
    return model.lives.size() - 1;
  }

  LockOrder& add(model::LifeId life, std::uint64_t held, std::uint64_t taken) {
    // A thread with a creator takes the two locks at the moment of its birth. A thread without a creator takes them
    // 1000 moments after its birth, when it has made all other threads.
    return add(life, held, taken, {model.lives[life].born + (model.lives[life].creator ? 0U : 1000U)});
  }
  LockOrder& add(model::LifeId life, std::uint64_t held, std::uint64_t taken, std::vector<std::uint64_t> moments) {
    LockOrder order;
    order.life = life;
    order.thread = life;
    order.held_as.number = held;
    order.taken_as.number = taken;
    order.held = lock(held);
    order.taken = lock(taken);
    order.moments = std::move(moments);
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
  EXPECT_EQ(findings[0].harm, Certainty::kPossible);
  EXPECT_EQ(findings[0].outcome, Outcome::kMayHang);
  EXPECT_EQ(findings[0].culprit.name, "lock_b (mutex)");
  EXPECT_NE(findings[0].summary.find("may hang between lock_b and lock_c"), std::string::npos) << findings[0].summary;
  EXPECT_NE(findings[0].chain[0].find("(3 times)"), std::string::npos) << findings[0].chain[0];
}

TEST(LockOrderInversion, IsReportedOnceForManyThreads) {
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
  // Three orders form a ring of three locks. But one thread has two of these orders, and a thread cannot block itself.
  scene.add(other, 2, 3);
  scene.add(one, 3, 1);
  EXPECT_EQ(scene.rings(), 0U);
  scene.add(scene.life(3, one), 3, 1);
  EXPECT_EQ(scene.rings(), 1U);
}

TEST(LockOrderInversion, OfThreeLocksIsReplacedByOneOfTwo) {
  Orders scene;
  const auto one = scene.life(1);
  scene.add(one, 1, 2);
  scene.add(scene.life(2, one), 2, 3);
  scene.add(scene.life(3, one), 3, 1);
  ASSERT_EQ(scene.rings(), 1U);
  EXPECT_EQ(orders::find_rings(scene.model).found[0].size(), 3U);
  // A ring of two of these locks replaces the ring of three.
  scene.add(scene.life(4, one), 2, 1);
  ASSERT_EQ(scene.rings(), 1U);
  EXPECT_EQ(orders::find_rings(scene.model).found[0].size(), 2U);
}

TEST(LockOrderInversion, TooManyOrdersAreNotSearchedCompletelyAndALimitSaysSo) {
  Orders scene;
  const auto first = scene.life(1);
  constexpr std::uint64_t kLocks = 50;
  for (std::uint64_t held = 1; held < kLocks; ++held) {
    for (std::uint64_t taken = held + 1; taken <= kLocks; ++taken) scene.add(scene.life(2, first), held, taken);
  }
  EXPECT_FALSE(orders::find_rings(scene.model).is_complete);
  scene.add(first, kLocks, kLocks - 1);
  EXPECT_EQ(scene.rings(), 1U) << "short rings are searched first";
  EXPECT_EQ(diagnose(scene.model).size(), 1U);
  std::vector<std::string> limits;
  diagnose(scene.model, limits);
  ASSERT_EQ(limits.size(), 1U);
  EXPECT_TRUE(limits[0].starts_with("1226 orders of locks are too many to search")) << limits[0];
}

TEST(LockOrderInversion, AGatePreventsTheRingUnlessBothThreadsLockItForReading) {
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

// A later moment alone does not show that one thread acted after another thread. Only the creation or the join of a
// thread orders the actions of two threads.
TEST(LockOrderInversion, LocksThatAThreadTookBeforeItMadeTheOtherDoNotCount) {
  Orders scene;
  const auto one = scene.life(1);
  const auto made_later = scene.life(10, one);
  scene.add(one, 1, 2, {9});
  scene.add(made_later, 2, 1);
  EXPECT_EQ(scene.rings(), 0U) << "the maker took the locks before it made the thread";
  scene.model.lock_orders[0].moments = {9, 10};
  EXPECT_EQ(scene.rings(), 1U) << "the maker took the locks before and after it made the thread";

  Orders grandchild;
  const auto root = grandchild.life(1);
  const auto between = grandchild.life(5, root);
  grandchild.add(root, 1, 2, {4});
  grandchild.add(grandchild.life(10, between), 2, 1);
  EXPECT_EQ(grandchild.rings(), 0U);

  Orders stranger;
  const auto main = stranger.life(1);
  const auto maker = stranger.life(2, main);
  stranger.add(stranger.life(3, main), 1, 2, {3});
  stranger.add(stranger.life(10, maker), 2, 1);
  EXPECT_EQ(stranger.rings(), 1U) << "the thread that took the locks earlier is not the maker";
}

TEST(LockOrderInversion, LocksOfAThreadThatWasJoinedBeforeDoNotCount) {
  Orders scene;
  const auto main = scene.life(1);
  scene.add(scene.life(2, main, 5, main), 1, 2);
  scene.add(scene.life(6, main), 2, 1);
  EXPECT_EQ(scene.rings(), 0U) << "the first thread was joined before the second one was made";
  scene.model.lives[1].joiner.reset();
  EXPECT_EQ(scene.rings(), 1U) << "the joiner is not known";

  Orders after_join;
  const auto joiner = after_join.life(1);
  after_join.add(after_join.life(2, joiner, 5, joiner), 1, 2);
  after_join.add(joiner, 2, 1, {5});
  EXPECT_EQ(after_join.rings(), 0U) << "the joiner took the locks after the join";
  after_join.model.lock_orders[1].moments = {2};
  EXPECT_EQ(after_join.rings(), 1U) << "the joiner took the locks before the join";
}

// The first of two workers is joined while the second one still works. A later moment of the second worker does not
// show that the second worker took its locks after the first worker took its own.
TEST(LockOrderInversion, AJoinOrdersOnlyTheThreadThatJoined) {
  Orders scene;
  const auto main = scene.life(1);
  const auto first = scene.life(2, main, 4, main);
  const auto second = scene.life(3, main, 5, main);
  scene.add(first, 1, 2);
  scene.add(second, 2, 1, {20});
  EXPECT_EQ(scene.rings(), 1U);
  // The second worker makes a third thread after the join. The third thread is not ordered after the first worker
  // either.
  scene.model.lock_orders.pop_back();
  scene.add(scene.life(6, second), 2, 1);
  EXPECT_EQ(scene.rings(), 1U);
  // The joiner makes a third thread after the join. The third thread is ordered after the first worker.
  scene.model.lock_orders.pop_back();
  scene.add(scene.life(7, main), 2, 1);
  EXPECT_EQ(scene.rings(), 0U);
}

TEST(LockOrderInversion, JoinsAndCreationsOrderOtherThreadsToo) {
  Orders scene;
  const auto main = scene.life(1);
  const auto helper = scene.life(2, main, 9, main);
  scene.add(scene.life(3, helper, 5, helper), 1, 2);
  scene.add(scene.life(10, main), 2, 1);
  EXPECT_EQ(scene.rings(), 0U)
      << "a helper joined the thread, and main joined the helper before it made the other thread";
  scene.model.lives[1].joined = 11;
  EXPECT_EQ(scene.rings(), 1U);
}

// The main thread takes the locks once before it makes the other thread, and once after it has joined the other thread.
// Neither time overlaps with the life of the other thread.
TEST(LockOrderInversion, EachMomentIsComparedSeparately) {
  Orders scene;
  const auto main = scene.life(1);
  scene.add(main, 1, 2, {1, 3});
  scene.add(scene.life(2, main, 3, main), 2, 1);
  EXPECT_EQ(scene.rings(), 0U);
  scene.model.lock_orders[0].moments = {1, 2, 3};
  EXPECT_EQ(scene.rings(), 1U);
}

TEST(LockOrderInversion, IsSilentIfAThreadMayHaveBeenJoined) {
  Orders scene;
  const auto main = scene.life(1);
  scene.add(main, 1, 2, {2});
  scene.add(scene.life(2, main), 2, 1);
  EXPECT_EQ(scene.rings(), 1U);
  scene.model.lives[1].is_followed = false;
  EXPECT_EQ(scene.rings(), 0U);
}

// If a rwlock prefers writers, a new reader waits for a waiting writer, and this writer waits for an earlier reader.
TEST(LockOrderInversion, AWriterBetweenTwoReadersClosesTheRing) {
  Orders scene;
  const auto main = scene.life(1);
  const auto reader = scene.life(2, main);
  const auto other_reader = scene.life(3, main);
  const auto writer = scene.life(4, main);
  scene.add(reader, 1, 2).held_as.shared = true;
  auto& second = scene.add(other_reader, 2, 1);
  second.taken_as.shared = true;
  second.queues = true;
  EXPECT_EQ(scene.rings(), 0U) << "nobody writes";
  scene.add(writer, 0, 1).queues = true;
  ASSERT_EQ(scene.rings(), 1U);
  const auto findings = diagnose(scene.model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("may hang between lock_b and lock_c"), std::string::npos) << findings[0].summary;
  EXPECT_NE(findings[0].summary.find("takes lock_b to write"), std::string::npos) << findings[0].summary;
  scene.model.lock_orders[1].queues = false;
  EXPECT_EQ(scene.rings(), 0U) << "the rwlock prefers readers";
  scene.model.lock_orders[1].queues = true;
  scene.model.lock_orders[2].gates = {{2, false}};
  EXPECT_EQ(scene.rings(), 0U) << "the writer holds lock_c, which one of the readers holds while it waits";
  scene.model.lock_orders[2].gates.clear();
  scene.model.lock_orders[2].life = reader;
  EXPECT_EQ(scene.rings(), 0U) << "the writer is one of the two readers";
}

// Each thread is joined before the next one is made. So all pairs of threads are ordered. A search that compared each
// pair would exceed the time limit of the test.
TEST(LockOrderInversion, ManyThreadsOneAfterTheOtherAreSearchedInAShortTime) {
  Orders scene;
  const auto main = scene.life(1);
  for (std::uint64_t i = 1; i <= 8000; ++i) {
    const auto life = scene.life(2 * i, main, 2 * i + 1, main);
    scene.add(life, i % 2 + 1, 2 - i % 2, {2 * i});
  }
  EXPECT_EQ(scene.rings(), 0U);
}

TEST(LockOrderInversion, OrdersOfTwoProcessesFormNoRing) {
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

TEST(LockOrderInversion, ALifeThatIsItsOwnAncestorCausesNoEndlessLoop) {
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
  record.moments[0] = 100;
  record.used = 1;
  record.times = 1;
  record.held_kind = record.taken_kind = static_cast<std::uint32_t>(LockKind::kMutex);
  return record;
}

struct OrderTrace {
  OrderTrace() {
    trace.as(test::kParent);
    thread = trace.thread(test::kParent, "main");
    other_thread = trace.thread(test::kHolder, "worker");
    life = trace.record(RecordType::kThreadLife, trace::ThreadLifeRecord{0, 1, 0, 0, trace::kLifeBegun, 0});
    other_life = trace.record(RecordType::kThreadLife, trace::ThreadLifeRecord{life, 2, 0, 0, trace::kLifeBegun, 0});
  }
  TraceBuilder trace;
  std::uint64_t thread = 0;
  std::uint64_t other_thread = 0;
  std::uint64_t life = 0;
  std::uint64_t other_life = 0;
};

TEST(LockOrderRecords, AreReadIntoARing) {
  OrderTrace scene;
  scene.trace.record(RecordType::kLockOrder, order_record(scene.life, scene.thread, 1, 2));
  scene.trace.record(RecordType::kLockOrder, order_record(scene.other_life, scene.other_thread, 2, 1));
  const auto findings = diagnose(test::read_model(scene.trace));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "lock-order-inversion");
  EXPECT_EQ(findings[0].culprit.address, 0x1040U);
}

// The record of a joiner may come after the record that names the joiner. A lock in the list of gates that has `inner`
// set was taken after the first lock of the order. So such a lock did not protect the first lock, and is no gate.
TEST(LockOrderRecords, GiveTheJoinerAndTheGates) {
  OrderTrace scene;
  const std::uint64_t late = scene.trace.size() + sizeof(trace::RecordHeader) + 48;
  scene.trace.record(RecordType::kThreadLife, trace::ThreadLifeRecord{scene.life, 5, 9, late, 0, 0});
  const auto joiner = scene.trace.record(RecordType::kThreadLife,
                                         trace::ThreadLifeRecord{scene.life, 6, 0, 0, trace::kLifeUnfollowed, 0});
  ASSERT_EQ(joiner, late);
  for (const std::uint32_t inner : {0U, 1U}) {
    auto record = order_record(scene.life, scene.thread, 1, 2);
    record.gates = 1;
    const trace::OrderGate gate{7, 0, inner};
    std::vector<std::byte> payload(sizeof record + sizeof gate);
    std::memcpy(payload.data(), &record, sizeof record);
    std::memcpy(payload.data() + sizeof record, &gate, sizeof gate);
    scene.trace.append(RecordType::kLockOrder, payload);
  }
  const model::Model model = test::read_model(scene.trace);
  ASSERT_EQ(model.lives.size(), 4U);
  EXPECT_EQ(model.lives[2].joiner, 3U);
  EXPECT_TRUE(model.lives[2].is_followed);
  EXPECT_FALSE(model.lives[3].is_followed);
  ASSERT_EQ(model.lock_orders.size(), 2U);
  EXPECT_EQ(model.lock_orders[0].gates.size(), 1U);
  EXPECT_TRUE(model.lock_orders[1].gates.empty());
}

TEST(LockOrderRecords, ThatAreInvalidAreIgnored) {
  OrderTrace scene;
  auto gates = order_record(scene.life, scene.thread, 1, 2);
  gates.gates = 0xffff'ffff;  // more gates than the record contains
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

}  // namespace
}  // namespace forksight
