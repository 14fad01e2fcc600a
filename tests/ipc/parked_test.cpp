// Tests messages whose consumer died, and messages that no consumer can handle: which process gets them, when it gets
// them, and what the queue reports about them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "child.hpp"
#include "forksight/ipc.h"
#include "forksight/ipc/queue.hpp"
#include "invariants.hpp"
#include "made_queue.hpp"

namespace forksight::ipc {
namespace {

using namespace std::chrono_literals;
using test::baton;
using test::child;
using test::make;
using testing::ElementsAre;
using testing::HasSubstr;

options shape_of(on_death policy) {
  options wanted;
  wanted.slots = wanted.buffers = 4;
  wanted.buffer_bytes = 64;
  wanted.after_death = policy;
  wanted.max_participants = 8;
  return wanted;
}

void send(queue& to, char letter) { ASSERT_TRUE(to.send_copy(&letter, 1, deadline::after(10s))); }

char letter_of(const message& from) { return from.size() == 1 ? *static_cast<const char*>(from.data()) : '?'; }

// Returns the next message, or the name of the error.
std::string next_of(queue& from, deadline until = deadline::now()) {
  auto got = from.receive(until);
  return got ? std::string(1, letter_of(*got)) : name_of(got.error().code);
}

queue attach(const queue& to, role as) {
  auto made = queue::attach(to.fd(), as);
  if (!made) ADD_FAILURE() << made.error().text;
  return std::move(made).value();
}

// Receives the next message and parks it.
void park_next(queue& from) {
  auto got = from.receive(deadline::after(10s));
  ASSERT_TRUE(got) << got.error().text;
  ASSERT_TRUE(got->park());
  EXPECT_EQ(got->data(), nullptr);
}

// Receives `count` messages in a child, and kills the child while it holds them. Returns the pid of the child.
pid_t die_with(const queue& of, int count) {
  const baton holds;
  child consumer([&] {
    auto own = of.reattach_after_fork();
    std::vector<message> held;
    for (int i = 0; i < count; ++i) held.push_back(std::move(own->receive(deadline::after(10s))).value());
    holds.pass();
    pause();
    return 0;
  });
  holds.take();
  const pid_t pid = consumer.pid();
  consumer.kill_and_wait();
  return pid;
}

const snapshot::buffer* parked_one(const snapshot& seen) {
  for (const snapshot::buffer& one : seen.in_use) {
    if (one.state == snapshot::buffer_state::parked) return &one;
  }
  return nullptr;
}

TEST(Returned, AHeldMessageDoesNotBlockTheQueue) {
  for (const on_death policy : {on_death::drop, on_death::redeliver}) {
    queue q = make(shape_of(policy));
    queue slow = attach(q, role::consumer);
    send(q, 'a');
    auto held = slow.receive();
    ASSERT_TRUE(held);
    for (int i = 0; i < 200; ++i) {
      send(q, 'b');
      ASSERT_EQ(next_of(q), "b") << i;
    }
    // Messages can be sent in the three other buffers.
    for (int i = 0; i < 3; ++i) send(q, 'c');
    EXPECT_EQ(letter_of(*held), 'a');
    EXPECT_TRUE(held->release());
  }
}

TEST(Returned, MessagesAreDeliveredInOrderAndBeforeQueuedOnes) {
  options wanted = shape_of(on_death::redeliver);
  wanted.buffers = wanted.slots = 8;
  queue q = make(wanted);
  for (const char letter : std::string("abcd")) send(q, letter);
  die_with(q, 3);
  EXPECT_EQ(test::recover_dead(q), 1u);
  EXPECT_EQ(q.inspect().returned, 3u);
  send(q, 'e');
  std::string got;
  for (int i = 0; i < 5; ++i) got += next_of(q);
  EXPECT_EQ(got, "abcde");
  EXPECT_EQ(next_of(q), "timeout");
  EXPECT_EQ(q.inspect().redelivered, 3u);
}

TEST(Returned, IsGivenToAConsumerThatCameAfterTheDeath) {
  queue q = make(shape_of(on_death::redeliver));
  send(q, 'a');
  die_with(q, 1);
  EXPECT_EQ(test::recover_dead(q), 1u);
  queue late = attach(q, role::consumer);
  EXPECT_EQ(next_of(late), "a");
}

TEST(Returned, WakesAConsumerThatWaits) {
  queue q = make(shape_of(on_death::redeliver));
  queue keeper = attach(q, role::caretaker);
  send(q, 'a');
  park_next(q);
  std::string got;
  std::thread waiter([&] { got = next_of(q, deadline::after(20s)); });
  while (!q.inspect().participants.at(0).waits_for_message) std::this_thread::yield();
  const auto requeued = keeper.requeue();
  waiter.join();
  ASSERT_TRUE(requeued);
  EXPECT_EQ(requeued.value(), 1u);
  EXPECT_EQ(got, "a");
}

// If no slot is free, drop_oldest must drop a message that occupies a slot. A returned message occupies no slot.
TEST(Returned, IsNotDroppedWhenNoSlotIsFree) {
  options wanted = shape_of(on_death::redeliver);
  wanted.slots = 2;
  wanted.buffers = 8;
  wanted.when_full = full::drop_oldest;
  queue q = make(wanted);
  send(q, 'a');
  die_with(q, 1);
  EXPECT_EQ(test::recover_dead(q), 1u);
  for (const char letter : std::string("bcd")) send(q, letter);
  std::string got;
  for (int i = 0; i < 3; ++i) got += next_of(q);
  EXPECT_EQ(got, "acd");
  EXPECT_EQ(q.inspect().dropped, 1u);
}

TEST(Returned, TheEndWaitsForMessagesThatOtherConsumersHold) {
  queue q = make(shape_of(on_death::redeliver));
  queue first = attach(q, role::consumer), second = attach(q, role::consumer);
  send(q, 'a');
  auto held = first.receive();
  ASSERT_TRUE(held);
  EXPECT_TRUE(q.close_producer());
  EXPECT_EQ(next_of(second), "timeout");
  EXPECT_EQ(next_of(second, deadline::after(120ms)), "timeout");
  // A consumer does not wait for the message that it holds itself.
  EXPECT_EQ(next_of(first, deadline::after(20s)), "closed");
  std::string got;
  std::thread waiter([&] { got = next_of(second, deadline::after(20s)); });
  while (!q.inspect().participants.at(2).waits_for_message) std::this_thread::yield();
  EXPECT_TRUE(held->release());
  waiter.join();
  EXPECT_EQ(got, "closed");
}

TEST(Returned, AfterTheLastProducerAConsumerStillGetsAReturnedMessage) {
  queue q = make(shape_of(on_death::redeliver));
  queue consumer = attach(q, role::consumer);
  send(q, 'a');
  const baton holds;
  child victim([&] {
    auto own = queue::attach(q.fd(), role::consumer);
    const auto got = own->receive();
    holds.pass();
    pause();
    return 0;
  });
  holds.take();
  EXPECT_TRUE(q.close_producer());
  EXPECT_EQ(next_of(consumer, deadline::after(120ms)), "timeout");
  victim.kill_and_wait();
  EXPECT_EQ(next_of(consumer, deadline::after(20s)), "a");
  EXPECT_EQ(next_of(consumer, deadline::after(20s)), "closed");
}

TEST(Returned, WithDropTheEndDoesNotWaitForMessagesThatOthersHold) {
  queue q = make(shape_of(on_death::drop));
  queue first = attach(q, role::consumer), second = attach(q, role::consumer);
  send(q, 'a');
  auto held = first.receive();
  ASSERT_TRUE(held);
  EXPECT_TRUE(q.close_producer());
  EXPECT_EQ(next_of(second), "closed");
}

// A parked message does not keep the queue open. A requeued message does.
TEST(Returned, ARequeuedMessageComesBeforeTheEnd) {
  for (const on_death policy : {on_death::drop, on_death::redeliver}) {
    queue q = make(shape_of(policy));
    queue consumer = attach(q, role::consumer), keeper = attach(q, role::caretaker);
    send(q, 'a');
    park_next(consumer);
    EXPECT_TRUE(q.close_producer());
    EXPECT_EQ(next_of(consumer), "closed");
    ASSERT_TRUE(keeper.requeue());
    EXPECT_EQ(next_of(consumer), "a");
    EXPECT_EQ(next_of(consumer), "closed");
  }
}

TEST(Parked, AMessageThatKilledItsConsumersCanBeReceivedAndReleased) {
  options wanted = shape_of(on_death::redeliver);
  wanted.buffers = wanted.slots = 2;
  wanted.max_redeliver = 1;
  queue q = make(wanted);
  std::vector<std::uint32_t> dead;
  for (const char letter : std::string("ab")) {
    send(q, letter);
    dead.clear();
    for (int i = 0; i < 2; ++i) {
      dead.push_back(static_cast<std::uint32_t>(die_with(q, 1)));
      test::recover_dead(q);
    }
  }
  EXPECT_EQ(next_of(q), "timeout");
  EXPECT_EQ(q.acquire(deadline::now()).error().code, errc::timeout);
  const snapshot seen = q.inspect();
  EXPECT_EQ(seen.parked, 2u);
  const snapshot::buffer& last = seen.in_use.at(seen.in_use.at(0).number > seen.in_use.at(1).number ? 0 : 1);
  EXPECT_EQ(last.deliveries, 2u);
  EXPECT_EQ(last.killed, dead);
  EXPECT_EQ(last.parked_by, 0u);
  EXPECT_EQ(last.bytes, 1u);
  EXPECT_EQ(last.producer, static_cast<std::uint32_t>(getpid()));
  for (const char letter : std::string("ab")) {
    auto got = q.receive_parked();
    ASSERT_TRUE(got) << got.error().text;
    EXPECT_EQ(letter_of(*got), letter);
    EXPECT_EQ(got->deliveries(), 2u);
    EXPECT_EQ(q.inspect().withdrawn, 1u);
    EXPECT_TRUE(got->release());
  }
  EXPECT_EQ(q.inspect().free, 2u);
  const auto none = q.receive_parked();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, errc::timeout);
  EXPECT_EQ(none.error().text, "queue: no message is parked");
}

TEST(Parked, AConsumerParksWhatItCannotHandle) {
  for (const on_death policy : {on_death::drop, on_death::redeliver}) {
    queue q = make(shape_of(policy));
    send(q, 'a');
    send(q, 'b');
    park_next(q);
    EXPECT_EQ(next_of(q), "b");
    EXPECT_EQ(next_of(q), "timeout");
    const snapshot seen = q.inspect();
    const snapshot::buffer* const one = parked_one(seen);
    ASSERT_NE(one, nullptr);
    EXPECT_EQ(one->parked_by, static_cast<std::uint32_t>(getpid()));
    EXPECT_EQ(one->deliveries, 1u);
    EXPECT_TRUE(one->killed.empty());
  }
}

TEST(Parked, ABufferKeepsNoDataOfItsFormerMessage) {
  options wanted = shape_of(on_death::redeliver);
  wanted.buffers = 1;
  wanted.max_redeliver = 0;
  queue q = make(wanted);
  send(q, 'a');
  park_next(q);
  ASSERT_TRUE(q.receive_parked()->release());
  send(q, 'b');
  const auto dead = static_cast<std::uint32_t>(die_with(q, 1));
  test::recover_dead(q);
  const snapshot seen = q.inspect();
  const snapshot::buffer* const one = parked_one(seen);
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->parked_by, 0u);
  EXPECT_THAT(one->killed, ElementsAre(dead));
}

TEST(Parked, RequeueReturnsAllMessagesAndResetsTheirDeliveries) {
  options wanted = shape_of(on_death::redeliver);
  wanted.max_redeliver = 0;
  queue q = make(wanted);
  for (const char letter : std::string("ab")) {
    send(q, letter);
    die_with(q, 1);
    test::recover_dead(q);
  }
  send(q, 'c');
  const auto requeued = q.requeue();
  ASSERT_TRUE(requeued);
  EXPECT_EQ(requeued.value(), 2u);
  EXPECT_EQ(q.inspect().parked, 0u);
  auto first = q.receive(deadline::now());
  ASSERT_TRUE(first);
  EXPECT_EQ(letter_of(*first), 'a');
  EXPECT_EQ(first->deliveries(), 1u);
  EXPECT_EQ(next_of(q), "b");
  EXPECT_EQ(next_of(q), "c");
  EXPECT_EQ(q.requeue().value(), 0u);
}

TEST(Parked, RequeueOfOneMessageLeavesTheOthersParked) {
  queue q = make(shape_of(on_death::redeliver));
  for (const char letter : std::string("ab")) {
    send(q, letter);
    park_next(q);
  }
  auto got = q.receive_parked();
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->requeue());
  EXPECT_FALSE(static_cast<bool>(*got));
  EXPECT_EQ(next_of(q), "a");
  EXPECT_EQ(next_of(q), "timeout");
  EXPECT_EQ(q.inspect().parked, 1u);
  EXPECT_EQ(got->requeue().error().code, errc::bad_option);
  EXPECT_EQ(got->park().error().code, errc::bad_option);
  // A delivered message cannot be requeued, because that would change the order of its producer's messages.
  send(q, 'c');
  auto delivered = q.receive();
  ASSERT_TRUE(delivered);
  EXPECT_THAT(delivered->requeue().error().text, HasSubstr("takes only a message that receive_parked() returned"));
  EXPECT_TRUE(delivered->release());
}

TEST(Parked, OnlyReleaseFreesIt) {
  queue q = make(shape_of(on_death::redeliver));
  send(q, 'a');
  park_next(q);
  { const auto got = q.receive_parked(); }
  EXPECT_EQ(q.inspect().parked, 1u);
  auto other = q.receive_parked();
  ASSERT_TRUE(other);
  *other = message();
  const snapshot seen = q.inspect();
  ASSERT_EQ(seen.parked, 1u);
  // The calls of receive_parked() do not count as deliveries. Neither object with the parked message was released: the
  // first one was destroyed, and the second one was overwritten. Both times the queue parked the message again, but
  // parked_by is still the pid of the process that called park().
  EXPECT_EQ(seen.in_use.at(0).deliveries, 1u);
  EXPECT_EQ(seen.in_use.at(0).parked_by, static_cast<std::uint32_t>(getpid()));
}

TEST(Parked, IsParkedAgainIfItsHolderDies) {
  for (const on_death policy : {on_death::drop, on_death::redeliver}) {
    queue q = make(shape_of(policy));
    send(q, 'a');
    park_next(q);
    const baton holds;
    child victim([&] {
      auto own = queue::attach(q.fd(), role::caretaker);
      const auto got = own->receive_parked();
      holds.pass();
      pause();
      return got ? 0 : 1;
    });
    holds.take();
    EXPECT_EQ(q.receive_parked().error().code, errc::timeout);
    victim.kill_and_wait();
    // receive_parked() looks for dead members.
    auto got = q.receive_parked();
    ASSERT_TRUE(got) << got.error().text;
    EXPECT_EQ(letter_of(*got), 'a');
    EXPECT_EQ(got->deliveries(), 1u);
    EXPECT_EQ(q.inspect().lost, 0u);
  }
}

TEST(Parked, AForkedChildCannotUseTheParentsMessage) {
  queue q = make(shape_of(on_death::redeliver));
  send(q, 'a');
  park_next(q);
  auto got = q.receive_parked();
  ASSERT_TRUE(got);
  child other([&] {
    if (got->park().error().code != errc::used_after_fork) return 1;
    if (got->requeue().error().code != errc::used_after_fork) return 2;
    if (q.receive_parked().error().code != errc::used_after_fork) return 3;
    if (q.requeue().error().code != errc::used_after_fork) return 4;
    *got = message();
    return 0;
  });
  EXPECT_EQ(other.wait(), 0);
  EXPECT_EQ(q.inspect().withdrawn, 1u);
  EXPECT_TRUE(got->release());
}

TEST(Parked, ACaretakerCountsNeitherForUnlinkAtNorAsAConsumer) {
  options wanted = shape_of(on_death::redeliver);
  wanted.backing = strategy::named;
  wanted.unlink_at = 2;
  queue q = make(wanted);
  const std::string path = "/dev/shm" + q.name();
  struct stat about {};
  auto keeper = queue::attach(q.name(), role::caretaker);
  ASSERT_TRUE(keeper) << keeper.error().text;
  EXPECT_EQ(stat(path.c_str(), &about), 0);
  EXPECT_EQ(keeper->receive(deadline::now()).error().code, errc::role);
  EXPECT_EQ(keeper->acquire(deadline::now()).error().code, errc::role);
  EXPECT_EQ(keeper->send_copy("x", 1, deadline::now()).error().code, errc::role);
  EXPECT_TRUE(q.inspect().participants.at(1).is_caretaker);
  {
    queue consumer = attach(q, role::consumer);
    EXPECT_NE(stat(path.c_str(), &about), 0);
  }
  // The only consumer has left. The caretaker does not count as a consumer.
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(q.send_copy("x", 1, deadline::after(10s)));
  EXPECT_EQ(q.send_copy("x", 1).error().code, errc::no_consumer);
}

TEST(Parked, ACaretakerDoesNotCountAsAProducer) {
  queue q = make(shape_of(on_death::redeliver));
  queue consumer = attach(q, role::consumer);
  const queue keeper = attach(q, role::caretaker);
  send(q, 'a');
  EXPECT_TRUE(q.close_producer());
  EXPECT_EQ(next_of(consumer), "a");
  EXPECT_EQ(next_of(consumer), "closed");
}

// A read-only payload is in a file of its own. A caretaker must attach with the payload file of the same queue.
TEST(Parked, APayloadOfAnotherQueueIsRefused) {
  options wanted = shape_of(on_death::redeliver);
  wanted.readonly_payload = true;
  wanted.holds_references = true;
  queue q = make(wanted);
  const queue other = make(wanted);
  send(q, 'a');
  park_next(q);
  const auto refused = queue::attach(q.fd(), role::caretaker, other.payload_fd());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::bad_option);
  EXPECT_THAT(refused.error().text, HasSubstr("is the payload of another queue"));
  auto keeper = queue::attach(q.fd(), role::caretaker, q.payload_fd());
  ASSERT_TRUE(keeper) << keeper.error().text;
  auto got = keeper->receive_parked();
  ASSERT_TRUE(got) << got.error().text;
  EXPECT_EQ(letter_of(*got), 'a');
  struct stat about {};
  ASSERT_EQ(fstat(q.payload_fd(), &about), 0);
  EXPECT_EQ(q.inspect().payload_inode, about.st_ino);
  EXPECT_TRUE(q.inspect().holds_references);
  EXPECT_EQ(make(shape_of(on_death::drop)).inspect().payload_inode, 0u);
}

TEST(Parked, TheCFunctionsParkReceiveAndRequeue) {
  forksight_queue_options wanted{};
  wanted.slots = wanted.buffers = 2;
  forksight_queue *q = nullptr, *keeper = nullptr;
  forksight_queue_error why{};
  ASSERT_EQ(forksight_queue_create(&wanted, &q, &why), FORKSIGHT_QUEUE_OK);
  ASSERT_EQ(forksight_queue_attach(forksight_queue_fd(q), FORKSIGHT_QUEUE_CARETAKER, &keeper, &why),
            FORKSIGHT_QUEUE_OK);
  forksight_message* got = nullptr;
  EXPECT_EQ(forksight_queue_receive_parked(keeper, &got, &why), FORKSIGHT_QUEUE_TIMEOUT);
  EXPECT_STREQ(why.text, "queue: no message is parked");
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(forksight_queue_send_copy(q, &i, sizeof i, -1, &why), FORKSIGHT_QUEUE_OK);
    ASSERT_EQ(forksight_queue_receive(q, -1, &got, &why), FORKSIGHT_QUEUE_OK);
    EXPECT_EQ(forksight_message_requeue(got, &why), FORKSIGHT_QUEUE_BAD_OPTION);
    ASSERT_EQ(forksight_message_park(got, &why), FORKSIGHT_QUEUE_OK);
  }
  ASSERT_EQ(forksight_queue_receive_parked(keeper, &got, &why), FORKSIGHT_QUEUE_OK);
  EXPECT_EQ(forksight_message_size(got), sizeof(int));
  EXPECT_EQ(forksight_message_number(got), 0u);
  forksight_message_release(got);
  size_t count = 7;
  ASSERT_EQ(forksight_queue_requeue(keeper, &count, &why), FORKSIGHT_QUEUE_OK);
  EXPECT_EQ(count, 1u);
  ASSERT_EQ(forksight_queue_receive(q, 0, &got, &why), FORKSIGHT_QUEUE_OK);
  ASSERT_EQ(forksight_message_park(got, nullptr), FORKSIGHT_QUEUE_OK);
  ASSERT_EQ(forksight_queue_receive_parked(keeper, &got, &why), FORKSIGHT_QUEUE_OK);
  ASSERT_EQ(forksight_message_requeue(got, &why), FORKSIGHT_QUEUE_OK);
  ASSERT_EQ(forksight_queue_receive(q, 0, &got, &why), FORKSIGHT_QUEUE_OK);
  EXPECT_EQ(forksight_message_deliveries(got), 1u);
  EXPECT_EQ(forksight_message_number(got), 1u);
  forksight_message_release(got);
  EXPECT_EQ(forksight_queue_requeue(keeper, nullptr, nullptr), FORKSIGHT_QUEUE_OK);
  forksight_queue_close(keeper);
  forksight_queue_close(q);
}

}  // namespace
}  // namespace forksight::ipc
