// Tests fork() while the process holds a loan or a message, while its threads wait or recover, and while a feeder
// thread sends.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "child.hpp"
#include "forksight/ipc/queue.hpp"

namespace forksight::ipc {
namespace {

using namespace std::chrono_literals;
using test::child;

queue make(std::uint32_t buffers, feed how = feed::direct, bool atfork_handlers = false) {
  options wanted;
  wanted.slots = 64;
  wanted.buffers = buffers;
  wanted.buffer_bytes = 64;
  wanted.feeding = how;
  wanted.atfork_handlers = atfork_handlers;
  wanted.max_participants = 32;
  auto made = queue::create(wanted);
  if (!made) throw std::runtime_error(made.error().text);
  return std::move(made).value();
}

// Every child runs this function. Calls on the parent's handle must fail. The child's own handle must be able to send.
int act_as_child(const queue& parents) {
  auto& inherited = const_cast<queue&>(parents);
  if (inherited.receive(deadline::now()).error().code != errc::used_after_fork) return 1;
  if (inherited.acquire(deadline::now()).error().code != errc::used_after_fork) return 2;
  if (inherited.recover() != 0) return 3;
  auto own = parents.reattach_after_fork();
  if (!own) return 4;
  return own->send_copy("child", 5, deadline::after(30s)) ? 0 : 5;
}

bool takes_from_child(queue& q) {
  auto message = q.receive(deadline::after(30s));
  return message && message->size() == 5;
}

// Waits until the field `what` of some participant is true.
void await(const queue& q, bool snapshot::participant::*what) {
  for (;;) {
    for (const auto& one : q.inspect().participants) {
      if (one.*what) return;
    }
    std::this_thread::yield();
  }
}

TEST(Fork, WhileTheParentHoldsALoan) {
  queue q = make(4);
  auto loan = q.acquire();
  ASSERT_TRUE(loan);
  child other([&] { return act_as_child(q); });
  EXPECT_EQ(other.wait(), 0);
  EXPECT_EQ(q.inspect().loaned, 1U);
  ASSERT_TRUE(q.send(std::move(*loan), 1));
  EXPECT_TRUE(takes_from_child(q));
  EXPECT_EQ(q.receive(deadline::after(30s))->size(), 1U);
  EXPECT_EQ(q.inspect().free, 4U);
}

TEST(Fork, WhileTheParentHoldsAMessage) {
  queue q = make(4);
  ASSERT_TRUE(q.send_copy("x", 1));
  auto message = q.receive();
  ASSERT_TRUE(message);
  child other([&] {
    // The child's copy of the message releases nothing.
    if (message->release().error().code != errc::used_after_fork) return 6;
    return act_as_child(q);
  });
  EXPECT_EQ(other.wait(), 0);
  EXPECT_EQ(q.inspect().held, 1U);
  EXPECT_TRUE(message->release());
  EXPECT_TRUE(takes_from_child(q));
}

TEST(Fork, WhileAThreadWaitsForAMessage) {
  queue q = make(4);
  // This call makes the parent a producer. Without a producer, receive() would report the end of the queue.
  ASSERT_TRUE(q.send_copy("parent", 6));
  std::atomic<int> received{0};
  std::thread consumer([&] {
    while (q.receive(deadline::after(30s))) ++received;
  });
  await(q, &snapshot::participant::waits_for_message);
  child other([&] { return act_as_child(q); });
  EXPECT_EQ(other.wait(), 0);
  EXPECT_TRUE(q.send_copy("parent", 6));
  q.shutdown(true);
  consumer.join();
  EXPECT_EQ(received, 3);
}

TEST(Fork, WhileAThreadWaitsForABuffer) {
  queue q = make(1);
  ASSERT_TRUE(q.send_copy("x", 1));
  std::thread producer([&] { EXPECT_TRUE(q.send_copy("y", 1, deadline::after(30s))); });
  await(q, &snapshot::participant::waits_for_buffer);
  // The queue has no free buffer, so the child must wait for one, too.
  child other([&] { return act_as_child(q); });
  std::size_t bytes = 0;
  for (int i = 0; i < 3; ++i) bytes += q.receive(deadline::after(30s))->size();
  EXPECT_EQ(bytes, 7U);
  producer.join();
  EXPECT_EQ(other.wait(), 0);
}

TEST(Fork, WhileAThreadRecoversDeadMembers) {
  queue q = make(4);
  std::atomic<bool> is_over{false};
  std::thread recoverer([&] {
    while (!is_over) (void)q.recover();
  });
  for (int i = 0; i < 20; ++i) {
    child other([&] { return act_as_child(q); });
    EXPECT_EQ(other.wait(), 0);
    EXPECT_TRUE(takes_from_child(q));
  }
  is_over = true;
  recoverer.join();
}

// The parent created the queue, and closes its handle while the child still uses its own. The child has an entry of its
// own in the queue, so it can still send.
TEST(Fork, TheChildStaysWhenTheParentsHandleEnds) {
  auto q = std::make_unique<queue>(make(4));
  auto watcher = queue::attach(q->fd(), role::consumer);
  ASSERT_TRUE(watcher);
  const test::baton may_send, is_attached;
  child other([&] {
    auto own = q->reattach_after_fork();
    is_attached.pass();
    may_send.take();
    return own && own->send_copy("child", 5, deadline::after(30s)) ? 0 : 1;
  });
  is_attached.take();
  q.reset();
  may_send.pass();
  EXPECT_TRUE(takes_from_child(*watcher));
  EXPECT_EQ(other.wait(), 0);
}

// The process forks while threads put items on the feeder's list and the feeder sends them. No child hangs, and each
// item arrives exactly once.
void storm(bool atfork_handlers) {
  // The handle of each child starts a feeder.
  if (!test::kForkedChildMayStartThread) GTEST_SKIP() << test::kNoThreadAfterFork;
  constexpr int kForks = 60;
  constexpr int kSenders = 2;
  queue q = make(4, feed::thread, atfork_handlers);
  std::atomic<bool> is_over{false};
  std::atomic<int> sent{0};
  std::atomic<int> received{0}, from_children{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kSenders; ++i) {
    threads.emplace_back([&] {
      // The feeder's list has no limit, so the test keeps it below about 1000 messages.
      while (!is_over) {
        if (sent - received > 1000) {
          std::this_thread::yield();
        } else if (q.send_copy("p", 1)) {
          ++sent;
        }
      }
    });
  }
  auto consumer = queue::attach(q.fd(), role::consumer);
  ASSERT_TRUE(consumer);
  std::thread receiver([&] {
    while (auto message = consumer->receive(deadline::after(30s))) ++(message->size() == 1 ? received : from_children);
  });
  // Once a message has arrived, this process is a producer. Without a producer, receive() would report the end of the
  // queue.
  while (received == 0) std::this_thread::yield();
  for (int i = 0; i < kForks; ++i) {
    child other([&] {
      // Without atfork handlers, a thread of the parent may hold the lock of the inherited handle at the fork. In the
      // child, nobody could unlock it. So the child uses the inherited handle only with atfork handlers.
      if (atfork_handlers && q.send_copy("x", 1).error().code != errc::used_after_fork) return 1;
      auto own = q.reattach_after_fork();
      return own && own->send_copy("child", 5) ? 0 : 2;  // the destructor of `own` waits until the message is sent
    });
    EXPECT_EQ(other.wait(), 0);
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(q.close_producer());
  receiver.join();
  EXPECT_EQ(received, sent);
  EXPECT_EQ(from_children, kForks);
  EXPECT_EQ(consumer->inspect().participants.size(), 2U);
}

TEST(ForkStorm, WithAtforkHandlersTheInheritedHandleReturnsAnError) { storm(true); }
TEST(ForkStorm, WithoutAtforkHandlersTheChildsOwnHandleWorks) { storm(false); }

// The case repro/queue/feeder_items shows the hazard that the atfork handlers prevent.

}  // namespace
}  // namespace forksight::ipc
