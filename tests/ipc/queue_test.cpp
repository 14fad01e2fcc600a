// Tests the basic functions of a queue: within one process, between processes, and after processes have died.
#include "forksight/ipc/queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "child.hpp"
#include "invariants.hpp"
#include "made_queue.hpp"

namespace forksight::ipc {
namespace {

using namespace std::chrono_literals;
using test::baton;
using test::child;
using test::make;
using testing::ContainsRegex;
using testing::HasSubstr;

options small() {
  options wanted;
  wanted.slots = 4;
  wanted.buffers = 4;
  wanted.buffer_bytes = 64;
  return wanted;
}

std::string text_of(const message& from) { return {static_cast<const char*>(from.data()), from.size()}; }

deadline soon() { return deadline::after(20ms); }

TEST(Queue, HandsOverWhatWasWritten) {
  queue q = make(small());
  auto to = q.acquire();
  ASSERT_TRUE(to) << to.error().text;
  EXPECT_EQ(to->capacity(), 64u);
  std::memcpy(to->data(), "hello", 5);
  ASSERT_TRUE(q.send(std::move(*to), 5));
  auto got = q.receive();
  ASSERT_TRUE(got) << got.error().text;
  EXPECT_EQ(text_of(*got), "hello");
  EXPECT_EQ(got->producer(), static_cast<std::uint32_t>(getpid()));
  EXPECT_EQ(got->deliveries(), 1u);
}

struct alignas(64) point {
  double x, y;
  bool operator==(const point&) const = default;
};

TEST(Queue, APayloadCanBeWrittenAndReadAsElements) {
  options wanted = small();
  wanted.buffer_bytes = 3 * sizeof(point);
  wanted.buffers = 3;
  queue q = make(wanted);
  std::vector<loan> all;
  for (int i = 0; i < 3; ++i) all.push_back(std::move(q.acquire(soon())).value());
  for (loan& one : all) {
    const std::span<point> points = one.as<point>();
    ASSERT_EQ(points.size(), 3u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(points.data()) % alignof(point), 0u);
    points[0] = {1, 2};
    points[1] = {3, 4};
    ASSERT_TRUE(q.send(std::move(one), points.first(2).size_bytes()));
    EXPECT_TRUE(one.as<point>().empty());
    const auto got = q.receive(soon());
    ASSERT_TRUE(got) << got.error().text;
    const auto read = got->as<point>();
    ASSERT_TRUE(read) << read.error().text;
    ASSERT_EQ(read->size(), 2u);
    EXPECT_EQ((*read)[1], (point{3, 4}));
    EXPECT_EQ(got->as<char>()->size(), 2 * sizeof(point));
  }
  EXPECT_TRUE(message().as<int>()->empty());
}

TEST(Queue, AMessageThatIsNotAWholeNumberOfElementsIsRefused) {
  queue q = make(small());
  ASSERT_TRUE(q.send_copy("seven b", 7));
  const auto got = q.receive(soon());
  ASSERT_TRUE(got);
  const auto read = got->as<std::uint32_t>();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, errc::bad_option);
  EXPECT_EQ(read.error().text, "queue: a message of 7 bytes is not a whole number of elements of 4 bytes");
}

// The types with a `!` cannot be elements: their copies in another process would refer to memory of this process.
static_assert(payload<int> && payload<point> && !payload<std::string> && !payload<char*> && !payload<std::vector<int>>);

TEST(Queue, KeepsTheOrderOverManyLaps) {
  queue q = make(small());
  for (int i = 0; i < 1000; ++i) {
    for (int k = 0; k < 3; ++k) {
      const int value = 3 * i + k;
      ASSERT_TRUE(q.send_copy(&value, sizeof value));
    }
    for (int k = 0; k < 3; ++k) {
      auto got = q.receive(deadline::now());
      ASSERT_TRUE(got);
      int value = -1;
      std::memcpy(&value, got->data(), sizeof value);
      ASSERT_EQ(value, 3 * i + k);
    }
  }
}

TEST(Queue, AnUnsentLoanAndAReleasedMessageFreeTheirBuffers) {
  queue q = make(small());
  for (int i = 0; i < 100; ++i) {
    auto to = q.acquire(deadline::now());
    ASSERT_TRUE(to) << to.error().text;
  }
  ASSERT_TRUE(q.send_copy("x", 1));
  {
    auto got = q.receive();
    ASSERT_TRUE(got);
    EXPECT_TRUE(got->release());
    EXPECT_EQ(got->data(), nullptr);
  }
  EXPECT_EQ(q.inspect().free, 4u);
}

TEST(Queue, ATimeoutSaysWhoHoldsWhat) {
  queue q = make(small());
  std::vector<loan> held;
  for (int i = 0; i < 4; ++i) held.push_back(std::move(q.acquire()).value());
  const auto refused = q.acquire(soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::timeout);
  // On a busy machine the wait and the loans may last longer than their least time.
  const std::string seconds = "[0-9]+\\.[0-9] s";
  EXPECT_THAT(refused.error().text,
              ContainsRegex("no free buffer after " + seconds + ": 0 HELD, 0 QUEUED, 4 LOANED by pid " +
                            std::to_string(getpid()) + " \\(alive, state R, " + seconds + "\\)"));
}

TEST(Queue, TheCallerKeepsALoanThatCouldNotBeSent) {
  options wanted = small();
  wanted.slots = 2;
  queue q = make(wanted);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(q.send_copy("x", 1));
  auto to = q.acquire();
  ASSERT_TRUE(to);
  const auto refused = q.send(std::move(*to), 1, soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::timeout);
  EXPECT_THAT(refused.error().text, HasSubstr("no free slot"));
  ASSERT_TRUE(static_cast<bool>(*to));
  ASSERT_TRUE(q.receive());
  EXPECT_TRUE(q.send(std::move(*to), 1, soon()));
}

TEST(Queue, TooLargeAMessageIsRefusedWithBothSizes) {
  queue q = make(small());
  const std::vector<char> large(65);
  const auto refused = q.send_copy(large.data(), large.size());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::too_large);
  EXPECT_EQ(refused.error().text,
            "queue: the message has 65 bytes, but a buffer has only 64: send smaller messages, or create the queue "
            "with a larger buffer_bytes");
}

TEST(Queue, DropOldestDropsTheOldest) {
  options wanted = small();
  wanted.when_full = full::drop_oldest;
  queue q = make(wanted);
  for (const char letter : std::string_view("abcdef")) ASSERT_TRUE(q.send_copy(&letter, 1));
  std::string got;
  for (int i = 0; i < 4; ++i) got += text_of(q.receive(deadline::now()).value());
  EXPECT_EQ(got, "cdef");
  EXPECT_EQ(q.inspect().dropped, 2u);
}

TEST(Queue, FullFailDoesNotWait) {
  options wanted = small();
  wanted.when_full = full::fail;
  queue q = make(wanted);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(q.send_copy("x", 1));
  const auto refused = q.send_copy("x", 1, deadline::never());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::timeout);
}

TEST(Queue, AfterTheLastProducerClosedAndTheLastMessageTheQueueEnds) {
  queue q = make(small());
  auto consumer = queue::attach(q.fd(), role::consumer);
  ASSERT_TRUE(consumer) << consumer.error().text;
  ASSERT_TRUE(q.send_copy("x", 1));
  EXPECT_TRUE(q.close_producer());
  EXPECT_TRUE(consumer->receive());
  const auto over = consumer->receive();
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, errc::closed);
  const auto refused = q.send_copy("x", 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::closed);
}

TEST(Queue, ShutdownWithoutDrainEndsItAtOnce) {
  queue q = make(small());
  ASSERT_TRUE(q.send_copy("x", 1));
  q.shutdown(false);
  EXPECT_EQ(q.receive().error().code, errc::closed);
  EXPECT_EQ(q.send_copy("x", 1).error().code, errc::closed);
}

TEST(Queue, RolesAreKept) {
  queue q = make(small());
  auto producer = queue::attach(q.fd(), role::producer);
  auto consumer = queue::attach(q.fd(), role::consumer);
  ASSERT_TRUE(producer);
  ASSERT_TRUE(consumer);
  EXPECT_EQ(producer->receive().error().code, errc::role);
  EXPECT_EQ(consumer->acquire().error().code, errc::role);
}

TEST(Queue, AHandleOfTheParentIsRefusedInTheChild) {
  queue q = make(small());
  child other([&] {
    if (q.receive(deadline::now()).error().code != errc::used_after_fork) return 1;
    auto own = q.reattach_after_fork();
    if (!own) return 2;
    return own->send_copy("child", 5) ? 0 : 3;
  });
  auto got = q.receive(deadline::after(10s));
  ASSERT_TRUE(got) << got.error().text;
  EXPECT_EQ(text_of(*got), "child");
  EXPECT_EQ(got->producer(), static_cast<std::uint32_t>(other.pid()));
  EXPECT_EQ(other.wait(), 0);
}

TEST(Queue, WakesAConsumerInAnotherProcess) {
  queue q = make(small());
  child other([&] {
    auto own = q.reattach_after_fork();
    for (int i = 0; i < 100; ++i) {
      auto got = own->receive(deadline::after(10s));
      if (!got || text_of(*got) != std::to_string(i)) return 1;
    }
    return 0;
  });
  for (int i = 0; i < 100; ++i) {
    const std::string text = std::to_string(i);
    ASSERT_TRUE(q.send_copy(text.data(), text.size(), deadline::after(10s)));
  }
  EXPECT_EQ(other.wait(), 0);
}

TEST(Queue, TheLoansOfADeadProducerAreFreed) {
  queue q = make(small());
  const baton holds;
  child other([&] {
    auto own = q.reattach_after_fork();
    std::vector<loan> held;
    for (int i = 0; i < 4; ++i) held.push_back(std::move(own->acquire()).value());
    holds.pass();
    pause();
    return 0;
  });
  holds.take();
  EXPECT_EQ(q.acquire(soon()).error().code, errc::timeout);
  other.kill_and_wait();
  EXPECT_TRUE(q.acquire(deadline::after(10s)));
  EXPECT_EQ(q.inspect().recovered, 1u);
}

TEST(Queue, TheMessageOfADeadConsumerIsLostOrGivenToAnother) {
  for (const on_death policy : {on_death::drop, on_death::redeliver}) {
    options wanted = small();
    wanted.after_death = policy;
    queue q = make(wanted);
    ASSERT_TRUE(q.send_copy("first", 5));
    ASSERT_TRUE(q.send_copy("second", 6));
    test::die_with_a_message(q);
    EXPECT_EQ(test::recover_dead(q), 1u);
    auto got = q.receive(deadline::after(10s));
    ASSERT_TRUE(got) << got.error().text;
    EXPECT_EQ(text_of(*got), policy == on_death::drop ? "second" : "first");
    EXPECT_EQ(got->deliveries(), policy == on_death::drop ? 1u : 2u);
    EXPECT_EQ(q.inspect().lost, policy == on_death::drop ? 1u : 0u);
  }
}

TEST(Queue, AMessageThatKillsItsConsumersIsParked) {
  options wanted = small();
  wanted.after_death = on_death::redeliver;
  wanted.max_redeliver = 2;
  queue q = make(wanted);
  ASSERT_TRUE(q.send_copy("x", 1));
  for (int i = 0; i < 3; ++i) {
    child victim([&] {
      auto own = q.reattach_after_fork();
      const auto got = own->receive(deadline::after(10s));
      raise(SIGKILL);
      return 0;
    });
    EXPECT_EQ(victim.wait(), 128 + SIGKILL);
    test::recover_dead(q);
  }
  EXPECT_EQ(q.receive(soon()).error().code, errc::timeout);
  EXPECT_EQ(q.inspect().parked, 1u);
}

TEST(Queue, TheDeathOfTheLastProducerIsReportedAfterItsMessages) {
  queue q = make(small());
  child other([&] {
    auto own = q.reattach_after_fork();
    if (!own->send_copy("x", 1)) return 1;
    raise(SIGKILL);
    return 0;
  });
  const auto pid = static_cast<std::uint32_t>(other.pid());
  EXPECT_EQ(other.wait(), 128 + SIGKILL);
  EXPECT_TRUE(q.receive(deadline::after(10s)));
  const auto over = q.receive(deadline::after(10s));
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, errc::producer_died);
  EXPECT_EQ(over.error().pid, pid);
}

TEST(Queue, AProducerDoesNotWaitForEverWithoutAConsumer) {
  queue q = make(small());
  child other([&] {
    auto own = q.reattach_after_fork();
    if (!own->receive(deadline::after(10s))) return 1;
    return 0;
  });
  ASSERT_TRUE(q.send_copy("x", 1));
  EXPECT_EQ(other.wait(), 0);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(q.send_copy("x", 1, deadline::after(10s)));
  const auto refused = q.send_copy("x", 1, deadline::never());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::no_consumer);
}

TEST(Queue, ManyThreadsOfOneHandleWaitAtOnce) {
  queue q = make(small());
  std::atomic<int> received{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (q.receive(deadline::after(10s))) ++received;
    });
  }
  auto producer = queue::attach(q.fd(), role::producer);
  ASSERT_TRUE(producer);
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(producer->send_copy(&i, sizeof i, deadline::after(10s)));
  EXPECT_TRUE(producer->close_producer());
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(received, 2000);
}

TEST(Queue, TwoThreadsMayCloseOneFeeder) {
  options wanted = small();
  wanted.feeding = feed::thread;
  for (int i = 0; i < 50; ++i) {
    queue q = make(wanted);
    for (int k = 0; k < 4; ++k) ASSERT_TRUE(q.send_copy("x", 1));
    std::thread other([&] { EXPECT_TRUE(q.close_producer()); });
    EXPECT_TRUE(q.close_producer());
    other.join();
    EXPECT_EQ(q.inspect().queued, 4u);
  }
}

TEST(Queue, AttachFailsIfTheTableOfMembersIsFull) {
  options wanted = small();
  wanted.max_participants = 2;
  queue q = make(wanted);
  auto second = queue::attach(q.fd());
  ASSERT_TRUE(second);
  const auto third = queue::attach(q.fd());
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, errc::no_participant);
}

TEST(Queue, AnInvalidOptionIsNamed) {
  options wanted = small();
  wanted.buffers = 0;
  const auto refused = queue::create(wanted);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::bad_option);
  EXPECT_THAT(refused.error().text, HasSubstr("buffers is 0"));
}

}  // namespace
}  // namespace forksight::ipc
