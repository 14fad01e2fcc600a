// Waiters are served in turn: each gets at least half of its fair share. The others are still served if a waiter is
// stopped, is killed, or gives up because its deadline has passed.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "child.hpp"
#include "forksight/ipc/queue.hpp"

namespace forksight::ipc {
namespace {

using namespace std::chrono_literals;
using test::child;

constexpr int kMany = 8;
// While this object exists, the calling thread and its later children run on one processor. A process that gets less
// processor time than the others sends fewer messages, and no queue can change that. On one processor the scheduler gives
// all processes the same time, even if the machine is busy.
class on_one_processor {
 public:
  on_one_processor() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  on_one_processor(const on_one_processor&) = delete;
  on_one_processor& operator=(const on_one_processor&) = delete;
  ~on_one_processor() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_{};
};

// A deadline that no wait of a test reaches, unless the queue hangs.
deadline patience() { return deadline::after(30s); }

queue make(std::uint32_t slots, std::uint32_t buffers, std::int32_t spin_us = -1) {
  options wanted;
  wanted.slots = slots;
  wanted.buffers = buffers;
  wanted.buffer_bytes = 64;
  wanted.max_participants = kMany + 2;
  wanted.spin_us = spin_us;
  auto made = queue::create(wanted);
  if (!made) ADD_FAILURE() << made.error().text;
  return std::move(made).value();
}

// Starts a process that sends messages until it is killed. Each call of the process has the deadline `each`.
std::unique_ptr<child> make_producer(const queue& of, deadline::clock::duration each = 1h) {
  return std::make_unique<child>([&of, each] {
    auto own = of.reattach_after_fork();
    if (!own) return 1;
    for (;;) {
      auto lent = own->acquire(deadline::after(each));
      if (!lent && lent.error().code == errc::timeout) continue;
      if (!lent) return 2;
      for (;;) {
        const auto sent = own->send(std::move(*lent), 1, deadline::after(each));
        if (sent) break;
        if (sent.error().code != errc::timeout) return 3;
      }
    }
  });
}

using processes = std::vector<std::unique_ptr<child>>;
processes make_producers(const queue& of, int count, deadline::clock::duration each = 1h) {
  processes all;
  for (int i = 0; i < count; ++i) all.push_back(make_producer(of, each));
  return all;
}

bool waits(const snapshot::participant& one) { return one.waits_for_slot || one.waits_for_buffer; }

// Returns when `count` producers wait for room at the same time.
void let_wait(const queue& of, int count) {
  for (;;) {
    const auto seen = of.inspect().participants;
    if (std::ranges::count_if(seen, waits) >= count) return;
    std::this_thread::sleep_for(1ms);
  }
}

// Receives `count` messages. Returns the number of messages of each producer, by pid.
std::map<std::uint32_t, int> receive(queue& of, int count) {
  std::map<std::uint32_t, int> by;
  for (int i = 0; i < count; ++i) {
    auto got = of.receive(patience());
    if (!got) {
      ADD_FAILURE() << "message " << i << ": " << got.error().text;
      break;
    }
    ++by[got->producer()];
  }
  return by;
}

void expect_half_a_share(const std::map<std::uint32_t, int>& by, const processes& all, int count) {
  const int share = count / static_cast<int>(all.size());
  for (const auto& one : all) {
    const auto found = by.find(static_cast<std::uint32_t>(one->pid()));
    EXPECT_GE(found == by.end() ? 0 : found->second, share / 2) << "of a share of " << share;
  }
}

struct shape {
  std::uint32_t slots, buffers;
  std::int32_t spin_us;
};
class Fairness : public testing::TestWithParam<shape> {
 protected:
  queue q = make(GetParam().slots, GetParam().buffers, GetParam().spin_us);
};

TEST_P(Fairness, EightProducersAtAFullQueueGetTheirShare) {
  const on_one_processor bound;
  const processes all = make_producers(q, kMany);
  let_wait(q, kMany);
  constexpr int kMessages = 8000;
  expect_half_a_share(receive(q, kMessages), all, kMessages);
}

// If there are fewer buffers than producers, the producers wait for a buffer. Otherwise they wait for a slot. The last
// number is the time in microseconds for which they spin before they sleep.
INSTANTIATE_TEST_SUITE_P(Ipc, Fairness,
                         testing::Values(shape{2, 1, 0}, shape{4, 4, 0}, shape{4, 4, 20}, shape{2, 16, 0},
                                         shape{4, 16, 20}),
                         [](const auto& of) {
                           return std::to_string(of.param.slots) + "slots" + std::to_string(of.param.buffers) +
                                  "buffers" + (of.param.spin_us != 0 ? "spinning" : "");
                         });

TEST(FairnessOfConsumers, EightAtAnEmptyQueueGetTheirShare) {
  const on_one_processor bound;
  queue q = make(4, 4);
  constexpr int kMessages = 8000;
  processes all;
  for (int i = 0; i < kMany; ++i) {
    all.push_back(std::make_unique<child>([&] {
      auto own = q.reattach_after_fork();
      if (!own) return 1;
      for (;;) {
        if (!own->receive()) return 2;
      }
    }));
  }
  const auto waiting = [&] {
    const auto seen = q.inspect().participants;
    return std::ranges::count_if(seen, [](const auto& one) { return one.waits_for_message; });
  };
  while (waiting() != kMany) std::this_thread::sleep_for(1ms);
  for (int i = 0; i < kMessages; ++i) ASSERT_TRUE(q.send_copy(&i, sizeof i, patience()));
  for (const auto& one : q.inspect().participants) {
    if (one.pid == static_cast<std::uint32_t>(getpid())) continue;
    EXPECT_GE(one.received, kMessages / kMany / 2);
  }
}

// The threads of one handle share one turn. Every one of these threads must still get to send.
TEST(Turns, AreSharedByTheThreadsOfOneHandle) {
  const on_one_processor bound;
  queue q = make(2, 1);
  const processes others = make_producers(q, 2);
  std::atomic<int> sent[4] = {};
  std::vector<std::thread> threads;
  for (auto& mine : sent) {
    threads.emplace_back([&] {
      for (;; ++mine) {
        if (!q.send_copy("", 1)) return;
      }
    });
  }
  let_wait(q, 3);
  constexpr int kMessages = 6000;
  const auto by = receive(q, kMessages);
  expect_half_a_share(by, others, kMessages * 2 / 3);
  q.shutdown(false);
  for (auto& one : threads) one.join();
  for (auto& one : sent) EXPECT_GT(one.load(), 0);
}

// A producer is stopped while it waits for its turn. The others go on. After SIGCONT, the producer gets turns again.
TEST(Turns, OfAStoppedProducerGoToTheOthers) {
  const on_one_processor bound;
  queue q = make(2, 1);
  ASSERT_TRUE(q.send_copy("", 1));
  const auto stopped = make_producer(q);
  let_wait(q, 1);
  stopped->signal(SIGSTOP);
  int status = 0;
  waitpid(stopped->pid(), &status, WUNTRACED);
  const processes others = make_producers(q, 2);
  let_wait(q, 3);
  // While the scheduler runs one process for some milliseconds, the others cannot send. So the test needs thousands of
  // messages.
  constexpr int kMessages = 6000;
  const auto by = receive(q, kMessages);
  EXPECT_EQ(by.contains(static_cast<std::uint32_t>(stopped->pid())), false);
  expect_half_a_share(by, others, kMessages);
  stopped->signal(SIGCONT);
  let_wait(q, 3);
  EXPECT_GT(receive(q, kMessages)[static_cast<std::uint32_t>(stopped->pid())], kMessages / 3 / 2);
}

TEST(Turns, OfAKilledProducerGoToTheOthers) {
  queue q = make(2, 1);
  ASSERT_TRUE(q.send_copy("", 1));
  for (int round = 0; round < 10; ++round) {
    auto killed = make_producer(q);
    let_wait(q, 1);
    const processes others = make_producers(q, 2);
    let_wait(q, 3);
    killed->kill_and_wait();
    receive(q, 100);
  }
}

// Many calls time out, some of them at the moment in which their turn comes.
TEST(Turns, OfProducersThatTimeOutGoToTheOthers) {
  const on_one_processor bound;
  queue q = make(2, 1);
  const processes impatient = make_producers(q, 4, 100us);
  const processes others = make_producers(q, 2);
  let_wait(q, 2);
  constexpr int kMessages = 6000;
  const auto by = receive(q, kMessages);
  // After a timeout, a producer waits behind the others. So only the share of the others is checked.
  expect_half_a_share(by, others, kMessages / 3);
}

}  // namespace
}  // namespace forksight::ipc
