// Tests when a queue ends. In these tests a supervisor starts the producers and consumers of the queue later, or again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "child.hpp"
#include "forksight/ipc.h"
#include "invariants.hpp"
#include "made_queue.hpp"

namespace forksight::ipc {
namespace {

using namespace std::chrono_literals;
using test::baton;
using test::child;
using test::make;
using testing::HasSubstr;

// Longer than any test may take. So if a call returns, it has not waited for this whole time.
constexpr auto kVeryLong = 1h;

options small() { return test::small(2); }

int letter_of(const message& from) { return from.size() == 1 ? *static_cast<const char*>(from.data()) : -1; }

// Starts a producer that sends one letter and closes its handle.
child producer_of(const queue& q, char letter) {
  return child([&q, letter] {
    auto own = queue::attach(q.fd(), role::producer);
    return own && own->send_copy(&letter, 1) ? 0 : 1;
  });
}

// Starts a process that attaches in that role, kills it, and returns its pid.
std::uint32_t one_that_dies(const queue& q, role as) {
  const baton is_there;
  child one([&] {
    auto own = queue::attach(q.fd(), as);
    if (!own) return 1;
    is_there.pass();
    pause();
    return 0;
  });
  is_there.take();
  const auto pid = static_cast<std::uint32_t>(one.pid());
  EXPECT_EQ(one.kill_and_wait(), 128 + SIGKILL);
  return pid;
}

void wait_until(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::sleep_for(1ms);
}

bool does_any(const queue& q, bool snapshot::participant::*what) {
  const auto all = q.inspect().participants;
  return std::ranges::any_of(all, [&](const auto& one) { return one.*what; });
}

TEST(Lifetimes, TheQueueEndsAfterAllExpectedProducersHaveEnded) {
  options wanted = small();
  wanted.expected_producers = 2;
  wanted.as = role::consumer;
  queue q = make(wanted);
  for (const char letter : {'a', 'b'}) {
    const auto none = q.receive(deadline::now());
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, errc::timeout) << none.error().text;
    EXPECT_EQ(producer_of(q, letter).wait(), 0);
    auto got = q.receive();
    ASSERT_TRUE(got) << got.error().text;
    EXPECT_EQ(letter_of(*got), letter);
  }
  const auto end = q.receive();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, errc::closed);
  EXPECT_EQ(end.error().text,
            "queue: no producer is left: 2 of 2 expected producers have come, 2 of them closed and 0 died. Nothing is "
            "queued");
}

// The queue does not know how many producers to expect. The first producer that ends is then also the last one.
TEST(Lifetimes, WithoutAnExpectedNumberTheQueueEndsWithTheLastProducer) {
  options wanted = small();
  wanted.as = role::consumer;
  queue q = make(wanted);
  EXPECT_EQ(producer_of(q, 'a').wait(), 0);
  EXPECT_TRUE(q.receive());
  EXPECT_EQ(q.receive().error().code, errc::closed);
}

TEST(Lifetimes, AProducerThatDiedIsCountedAndNamed) {
  options wanted = small();
  wanted.expected_producers = 2;
  wanted.as = role::consumer;
  queue q = make(wanted);
  const std::uint32_t pid = one_that_dies(q, role::producer);
  test::recover_dead(q);
  EXPECT_EQ(q.receive(deadline::now()).error().code, errc::timeout);
  EXPECT_EQ(producer_of(q, 'a').wait(), 0);
  EXPECT_TRUE(q.receive());
  const auto end = q.receive();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, errc::producer_died);
  EXPECT_EQ(end.error().pid, pid);
  EXPECT_EQ(end.error().text,
            "queue: no producer is left: 2 of 2 expected producers have come, 1 of them closed and 1 died. Nothing is "
            "queued. The producer that died last was process " +
                std::to_string(pid));
  const snapshot now = q.inspect();
  EXPECT_EQ(now.producers.expected, 2u);
  EXPECT_EQ(now.producers.closed, 1u);
  EXPECT_EQ(now.producers.died, 1u);
}

// A consumer waits. The only producer is killed. Another producer starts within the grace time.
TEST(Lifetimes, AProducerStartedAgainInTimeKeepsTheQueueOpen) {
  options wanted = small();
  wanted.grace = kVeryLong;
  wanted.as = role::caretaker;
  const queue q = make(wanted);
  child consumer([&] {
    auto own = queue::attach(q.fd(), role::consumer);
    auto got = own->receive();
    return got && letter_of(*got) == 'b' ? 0 : 1;
  });
  const baton is_there;
  child first([&] {
    auto own = queue::attach(q.fd(), role::producer);
    is_there.pass();
    pause();
    return 0;
  });
  is_there.take();
  wait_until([&] { return does_any(q, &snapshot::participant::waits_for_message); });
  first.kill_and_wait();
  // The consumer notices the death, and still waits.
  wait_until([&] { return !does_any(q, &snapshot::participant::is_producer); });
  EXPECT_TRUE(does_any(q, &snapshot::participant::is_consumer));
  child second([&] {
    auto own = queue::attach(q.fd(), role::producer);
    return own && own->send_copy("b", 1) ? 0 : 1;
  });
  EXPECT_EQ(second.wait(), 0);
  EXPECT_EQ(consumer.wait(), 0);
}

// The only producer is killed, and nobody starts another one. When the grace time is over, receive() returns
// producer_died.
TEST(Lifetimes, AProducerThatIsNotStartedAgainEndsTheQueue) {
  options wanted = small();
  wanted.grace = 20ms;
  wanted.as = role::consumer;
  queue q = make(wanted);
  const std::uint32_t pid = one_that_dies(q, role::producer);
  // A call that does not wait starts the grace time. The call returns before the grace time is over.
  test::recover_dead(q);
  EXPECT_EQ(q.receive(deadline::now()).error().code, errc::timeout);
  const auto end = q.receive();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, errc::producer_died);
  EXPECT_EQ(end.error().pid, pid);
  EXPECT_EQ(q.receive(deadline::now()).error().code, errc::producer_died);
}

TEST(Lifetimes, AProducerWaitsForAConsumerThatIsStartedAgain) {
  for (const bool expects : {false, true}) {
    options wanted = small();
    if (expects) {
      wanted.expected_consumers = 2;
    } else {
      wanted.grace = kVeryLong;
    }
    wanted.as = role::producer;
    queue q = make(wanted);
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(q.send_copy("x", 1));
    const baton is_there;
    child first([&] {
      auto own = queue::attach(q.fd(), role::consumer);
      is_there.pass();
      pause();
      return 0;
    });
    is_there.take();
    first.kill_and_wait();
    child second([&] {
      auto own = queue::attach(q.fd(), role::caretaker);
      // This process becomes a consumer only after the producer has noticed the death and waits for a buffer.
      wait_until([&] { return !does_any(*own, &snapshot::participant::is_consumer); });
      wait_until([&] { return does_any(*own, &snapshot::participant::waits_for_buffer); });
      own = queue::attach(q.fd(), role::consumer);
      return own->receive() ? 0 : 1;
    });
    const auto sent = q.send_copy("x", 1);
    EXPECT_TRUE(sent) << sent.error().text;
    EXPECT_EQ(second.wait(), 0);
  }
}

TEST(Lifetimes, ASendFailsWhenNoFurtherConsumerIsExpected) {
  options wanted = small();
  wanted.expected_consumers = 1;
  wanted.grace = 20ms;
  wanted.as = role::producer;
  queue q = make(wanted);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(q.send_copy("x", 1));
  const baton is_there;
  child only([&] {
    auto own = queue::attach(q.fd(), role::consumer);
    is_there.pass();
    pause();
    return 0;
  });
  is_there.take();
  only.kill_and_wait();
  const auto refused = q.send_copy("x", 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::no_consumer);
  EXPECT_THAT(refused.error().text, HasSubstr("no consumer is left: 1 of 1 expected consumer has come, 0 of them "
                                              "closed and 1 died. The queue is full: 0 HELD, 2 QUEUED"));
}

// The last consumer takes a message and ends while a producer finds no room. Then there is room.
TEST(Lifetimes, ASendSucceedsIfTheLastConsumerMakesRoomAndEnds) {
  options wanted = small();
  wanted.as = role::producer;
  queue q = make(wanted);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(q.send_copy("x", 1));
  auto last = queue::attach(q.fd(), role::consumer);
  ASSERT_TRUE(last);
  bool has_ended = false;
  detail::at_each_look(q, [&] {
    if (std::exchange(has_ended, true)) return;
    EXPECT_TRUE(last->receive(deadline::now()));
    queue ends = std::move(*last);
  });
  const auto sent = q.send_copy("x", 1, deadline::now());
  EXPECT_TRUE(sent) << sent.error().text;
  EXPECT_TRUE(has_ended);
  const auto refused = q.send_copy("x", 1, deadline::now());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::no_consumer);
}

// A supervisor process that creates a named queue with three expected producers. When the test passes `go`, the
// supervisor exits. If `is_killed` is true, the supervisor instead waits until the test kills it.
struct supervisor {
  explicit supervisor(bool is_killed) {
    if (pipe(name_) != 0) std::abort();
    process = std::make_unique<child>([this, is_killed] {
      options wanted = small();
      wanted.backing = strategy::named;
      wanted.expected_producers = 3;
      wanted.as = role::caretaker;
      auto q = queue::create(wanted);
      if (!q || write(name_[1], q->name().data(), q->name().size()) < 0) return 1;
      go.take();
      if (!is_killed) return 0;
      pause();
      return 1;
    });
    std::array<char, 64> text{};
    const ssize_t size = read(name_[0], text.data(), text.size());
    name.assign(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  }
  supervisor(const supervisor&) = delete;
  supervisor& operator=(const supervisor&) = delete;
  ~supervisor() {
    process.reset();
    unlink(("/dev/shm" + name).c_str());
    close(name_[0]);
    close(name_[1]);
  }

  baton go;
  std::string name;
  std::unique_ptr<child> process;

 private:
  int name_[2] = {-1, -1};
};

// The first producer sends a message and ends. Then the supervisor is killed. It cannot start the other two producers,
// so the queue ends.
TEST(Lifetimes, AKilledSupervisorEndsTheQueue) {
  supervisor one(true);
  auto q = queue::attach(one.name, role::consumer);
  ASSERT_TRUE(q) << q.error().text;
  EXPECT_EQ(child([&] {
              auto own = queue::attach(one.name, role::producer);
              return own && own->send_copy("a", 1) ? 0 : 1;
            }).wait(),
            0);
  auto got = q->receive();
  ASSERT_TRUE(got) << got.error().text;
  EXPECT_EQ(q->receive(deadline::now()).error().code, errc::timeout);
  const auto pid = static_cast<std::uint32_t>(one.process->pid());
  one.process->kill_and_wait();
  const auto end = q->receive();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, errc::producer_died);
  EXPECT_EQ(end.error().pid, pid);
  EXPECT_EQ(end.error().text, "queue: no producer is attached: 1 of 3 expected producers has come, and process " +
                                  std::to_string(pid) + ", which made the queue, has died. Nothing is queued");
}

// The supervisor closes its handle and exits before the producers come. The queue still waits for all three producers.
TEST(Lifetimes, ASupervisorThatClosesItsHandleEndsNothing) {
  supervisor one(false);
  auto q = queue::attach(one.name, role::consumer);
  ASSERT_TRUE(q) << q.error().text;
  one.go.pass();
  EXPECT_EQ(one.process->wait(), 0);
  for (const char letter : {'a', 'b', 'c'}) {
    EXPECT_EQ(q->receive(deadline::now()).error().code, errc::timeout);
    EXPECT_EQ(child([&] {
                auto own = queue::attach(one.name, role::producer);
                return own && own->send_copy(&letter, 1) ? 0 : 1;
              }).wait(),
              0);
    auto got = q->receive();
    ASSERT_TRUE(got) << got.error().text;
    EXPECT_EQ(letter_of(*got), letter);
  }
  EXPECT_EQ(q->receive().error().code, errc::closed);
}

TEST(Lifetimes, ATimeoutSaysHowManyHaveCome) {
  options wanted = small();
  wanted.expected_producers = 3;
  wanted.as = role::consumer;
  queue q = make(wanted);
  EXPECT_EQ(producer_of(q, 'a').wait(), 0);
  ASSERT_TRUE(q.receive());
  const auto none = q.receive(deadline::after(1ms));
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().text, HasSubstr("; no producer; 1 of 3 expected producers has come"));
}

TEST(Lifetimes, InvalidOptionsAreRefused) {
  const auto refusal = [](const options& wanted) {
    const auto made = queue::create(wanted);
    return made ? std::string() : made.error().text;
  };
  options wanted = small();
  wanted.expected_producers = 4097;
  EXPECT_EQ(refusal(wanted), "expected_producers is 4097: it can be 0 to 4096");
  wanted = small();
  wanted.expected_consumers = 5000;
  EXPECT_EQ(refusal(wanted), "expected_consumers is 5000: it can be 0 to 4096");
  wanted = small();
  wanted.grace = -1ms;
  EXPECT_EQ(refusal(wanted), "grace is -1 ms: it can be 0 to 2147483647 ms");
  wanted.grace = 2147483648ms;
  EXPECT_EQ(refusal(wanted), "grace is 2147483648 ms: it can be 0 to 2147483647 ms");
}

TEST(Lifetimes, TheCFunctionsPassTheExpectedNumbers) {
  forksight_queue_options wanted{};
  wanted.slots = wanted.buffers = 2;
  const forksight_queue_expected expected{2, 1, 20};
  forksight_queue *q = nullptr, *producer = nullptr;
  forksight_queue_error why{};
  ASSERT_EQ(forksight_queue_create_expecting(&wanted, &expected, &q, &why), FORKSIGHT_QUEUE_OK);
  auto seen = inspect(forksight_queue_fd(q));
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->producers.expected, 2u);
  EXPECT_EQ(seen->consumers.expected, 1u);
  EXPECT_EQ(seen->grace_ms, 20u);
  for (const int code : {FORKSIGHT_QUEUE_TIMEOUT, FORKSIGHT_QUEUE_CLOSED}) {
    ASSERT_EQ(forksight_queue_attach(forksight_queue_fd(q), FORKSIGHT_QUEUE_PRODUCER, &producer, &why),
              FORKSIGHT_QUEUE_OK);
    forksight_queue_close(producer);
    forksight_message* got = nullptr;
    EXPECT_EQ(forksight_queue_receive(q, 0, &got, &why), code) << why.text;
  }
  forksight_queue_close(q);
}

}  // namespace
}  // namespace forksight::ipc
