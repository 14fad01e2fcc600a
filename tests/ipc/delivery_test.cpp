// Tests of feed::thread. A handle accepts a message before the feeder thread sends it. So some accepted messages may
// never be sent. flush(), close_producer() and delivered() must report the numbers of these messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "child.hpp"
#include "forksight/ipc.h"
#include "forksight/ipc/queue.hpp"

namespace forksight::ipc {
namespace {

using namespace std::chrono_literals;
using test::child;
using testing::HasSubstr;

queue make_fed(std::uint32_t room, full when_full = full::block) {
  options wanted;
  wanted.slots = wanted.buffers = room;
  wanted.buffer_bytes = 64;
  wanted.feeding = feed::thread;
  wanted.when_full = when_full;
  auto made = queue::create(wanted);
  EXPECT_TRUE(made);
  return std::move(made).value();
}

// Runs a consumer that receives one message and then ends.
void let_one_come_and_go(queue& q) {
  ASSERT_TRUE(q.send_copy("x", 1));
  child consumer([&] {
    auto own = q.reattach_after_fork();
    return own && own->receive(deadline::after(20s)) ? 0 : 1;
  });
  ASSERT_EQ(consumer.wait(), 0);
}

TEST(Delivery, MessagesThatDoNotFitAfterTheLastConsumerLeftAreReported) {
  queue q = make_fed(2);
  let_one_come_and_go(q);
  for (int i = 0; i < 100; ++i) {
    // A call that reports the loss of an earlier message does not accept its own message.
    while (!q.send_copy(&i, sizeof i)) {
    }
  }
  const auto told = q.close_producer();
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, errc::undelivered);
  EXPECT_THAT(told.error().text,
              HasSubstr("98 of 101 messages did not get into the queue, numbers 3 to 100: queue: no consumer is left"));
  const delivery all = q.delivered();
  EXPECT_EQ(all.accepted, 101u);
  EXPECT_EQ(all.sent, 3u);
  EXPECT_EQ(all.lost, 98u);
  EXPECT_EQ(all.pending, 0u);
  ASSERT_EQ(all.lost_ranges.size(), 1u);
  EXPECT_EQ(all.lost_ranges[0].first, 3u);
  EXPECT_EQ(all.lost_ranges[0].count, 98u);
  EXPECT_EQ(all.lost_ranges[0].why.code, errc::no_consumer);
  // Each later call reports the same loss again.
  EXPECT_EQ(q.close_producer().error().code, errc::undelivered);
}

TEST(Delivery, FlushReportsHowManyMessagesWereSent) {
  queue q = make_fed(4);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(q.send_copy(&i, sizeof i));
  const auto flushed = q.flush(deadline::after(20s));
  ASSERT_TRUE(flushed) << flushed.error().text;
  EXPECT_EQ(flushed.value().accepted, 4u);
  EXPECT_EQ(flushed.value().sent, 4u);
  EXPECT_EQ(q.inspect().queued, 4u);
  EXPECT_TRUE(q.close_producer());
}

TEST(Delivery, AFlushThatTakesTooLongSaysHowMuchIsLeftAndMayBeRepeated) {
  queue q = make_fed(2);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(q.send_copy(&i, sizeof i));
  while (q.delivered().sent != 2) {
  }
  const auto early = q.flush(deadline::after(10ms));
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, errc::timeout);
  EXPECT_THAT(early.error().text, HasSubstr("the feeder thread has not sent 3 of 5 messages yet, and 0 were lost"));
  EXPECT_EQ(q.close_producer(deadline::after(10ms)).error().code, errc::timeout);
  EXPECT_EQ(q.send_copy("x", 1).error().code, errc::closed);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(q.receive(deadline::after(20s)));
  const auto told = q.close_producer(deadline::after(20s));
  ASSERT_TRUE(told) << told.error().text;
  EXPECT_EQ(told.value().sent, 5u);
}

// The queue refuses messages while it is full. In between, the test receives a message, so that the queue accepts one
// more message. So there are two ranges of lost messages.
TEST(Delivery, EachLostRangeHasItsNumbersAndItsReason) {
  queue q = make_fed(2, full::fail);
  const auto put = [&](std::uint64_t number) {
    while (!q.send_copy(&number, sizeof number)) {
    }
    while (q.delivered().pending != 0) {
    }
  };
  for (std::uint64_t i = 0; i < 4; ++i) put(i);
  ASSERT_TRUE(q.receive(deadline::after(20s)));
  put(4);
  q.shutdown(true);
  put(5);
  EXPECT_THAT(q.flush().error().text,
              HasSubstr("3 of 6 messages did not get into the queue, the first are numbers 2 to 3"));
  const delivery all = q.delivered();
  ASSERT_EQ(all.lost_ranges.size(), 2u);
  EXPECT_EQ(all.lost_ranges[0].first, 2u);
  EXPECT_EQ(all.lost_ranges[0].count, 2u);
  EXPECT_EQ(all.lost_ranges[0].why.code, errc::timeout);
  EXPECT_EQ(all.lost_ranges[1].first, 5u);
  EXPECT_EQ(all.lost_ranges[1].count, 1u);
  EXPECT_EQ(all.lost_ranges[1].why.code, errc::closed);
}

TEST(Delivery, InAForkedChildTheParentsHandleReturnsUsedAfterFork) {
  queue q = make_fed(2);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(q.send_copy(&i, sizeof i));
  while (q.delivered().sent != 2) {
  }
  child other([&] {
    if (q.delivered().accepted != 0 || q.flush().error().code != errc::used_after_fork) return 1;
    return q.close_producer().error().code == errc::used_after_fork ? 0 : 2;
  });
  EXPECT_EQ(other.wait(), 0);
  q.shutdown(false);
}

TEST(Delivery, TheCFunctionsReportLostMessages) {
  forksight_queue_options wanted{};
  wanted.slots = wanted.buffers = 2;
  wanted.thread = 1;
  forksight_queue* q = nullptr;
  forksight_queue_error why{};
  ASSERT_EQ(forksight_queue_create(&wanted, &q, &why), FORKSIGHT_QUEUE_OK);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(forksight_queue_send_copy(q, &i, sizeof i, -1, &why), FORKSIGHT_QUEUE_OK);
  }
  forksight_queue_delivery told{};
  EXPECT_EQ(forksight_queue_flush(q, 300, &told, &why), FORKSIGHT_QUEUE_TIMEOUT);
  EXPECT_EQ(told.accepted, 5u);
  EXPECT_EQ(told.sent, 2u);
  EXPECT_EQ(told.pending, 3u);
  forksight_queue_cancel(q);
  EXPECT_EQ(forksight_queue_send_copy(q, "x", 1, -1, &why), FORKSIGHT_QUEUE_CANCELLED);
  EXPECT_EQ(forksight_queue_close_producer(q, -1, &told, &why), FORKSIGHT_QUEUE_UNDELIVERED);
  EXPECT_EQ(told.sent, 2u);
  EXPECT_EQ(told.lost, 3u);
  EXPECT_EQ(told.first_lost, 2u);
  EXPECT_EQ(told.first_lost_count, 3u);
  EXPECT_EQ(told.pending, 0u);
  forksight_queue_close(q);
}

}  // namespace
}  // namespace forksight::ipc
