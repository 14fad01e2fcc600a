// Tests the two ways to end another thread's wait: cancel() of the handle, and pthread_cancel() of the waiting thread.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <optional>
#include <thread>

#include "child.hpp"
#include "forksight/ipc/queue.hpp"
#include "made_queue.hpp"

namespace forksight::ipc {
namespace {

using namespace std::chrono_literals;
using test::make;

options small() {
  options wanted;
  wanted.slots = 2;
  wanted.buffers = 4;
  wanted.buffer_bytes = 64;
  return wanted;
}

using waits = snapshot::participant;

void wait_until(const queue& of, bool waits::*for_it) {
  while (!(of.inspect().participants.at(0).*for_it)) std::this_thread::yield();
}

// Checks that `call` waits, and that it returns the error `cancelled` after cancel().
void expect_cancelled(queue& q, bool waits::*for_it, const std::function<errc()>& call) {
  std::optional<errc> said;
  std::thread waiter([&] { said = call(); });
  wait_until(q, for_it);
  q.cancel();
  waiter.join();
  EXPECT_EQ(said, errc::cancelled);
}

TEST(Cancel, EndsAReceive) {
  queue q = make(small());
  expect_cancelled(q, &waits::waits_for_message, [&] { return q.receive().error().code; });
  // Each later call is refused, even if it would not have to wait.
  EXPECT_EQ(q.receive().error().code, errc::cancelled);
  EXPECT_EQ(q.acquire().error().code, errc::cancelled);
}

TEST(Cancel, EndsAnAcquire) {
  queue q = make(small());
  std::vector<loan> all;
  for (int i = 0; i < 4; ++i) all.push_back(std::move(q.acquire()).value());
  expect_cancelled(q, &waits::waits_for_buffer, [&] { return q.acquire().error().code; });
  // The buffers on loan can still be given back.
  auto other = queue::attach(q.fd());
  all.clear();
  EXPECT_TRUE(other->acquire(deadline::now()));
}

TEST(Cancel, EndsASendAndTheCallerKeepsTheLoan) {
  queue q = make(small());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(q.send_copy("x", 1));
  auto own = q.acquire();
  ASSERT_TRUE(own);
  expect_cancelled(q, &waits::waits_for_slot, [&] { return q.send(std::move(*own), 1).error().code; });
  EXPECT_TRUE(*own);
}

TEST(Cancel, EndsAllThreadsOfOneHandleAndNoOther) {
  queue q = make(small());
  auto other = queue::attach(q.fd());
  ASSERT_TRUE(other);
  std::atomic<int> cancelled{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { cancelled += q.receive().error().code == errc::cancelled ? 1 : 0; });
  }
  wait_until(q, &waits::waits_for_message);
  q.cancel();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cancelled, 4);
  ASSERT_TRUE(other->send_copy("x", 1));
  EXPECT_TRUE(other->receive(deadline::after(10s)));
}

const queue* g_to_cancel = nullptr;

TEST(Cancel, MayBeCalledByASignalHandler) {
  queue q = make(small());
  g_to_cancel = &q;
  struct sigaction by {
  }, before{};
  by.sa_handler = [](int) { g_to_cancel->cancel(); };
  by.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &by, &before);
  std::optional<errc> said;
  std::thread waiter([&] { said = q.receive().error().code; });
  wait_until(q, &waits::waits_for_message);
  pthread_kill(waiter.native_handle(), SIGUSR1);
  waiter.join();
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(said, errc::cancelled);
}

TEST(Cancel, EndsTheWaitForAFeederAndTheHandleCloses) {
  options wanted = small();
  wanted.feeding = feed::thread;
  queue q = make(wanted);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(q.send_copy(&i, sizeof i));
  std::optional<errc> said;
  std::thread waiter([&] { said = q.flush().error().code; });
  while (q.delivered().sent != 2) std::this_thread::yield();
  q.cancel();
  waiter.join();
  EXPECT_EQ(said, errc::undelivered);
  const delivery all = q.delivered();
  EXPECT_EQ(all.lost, 8u);
  ASSERT_EQ(all.lost_ranges.size(), 1u);
  EXPECT_EQ(all.lost_ranges[0].why.code, errc::cancelled);
  EXPECT_EQ(q.close_producer().error().code, errc::undelivered);
}

TEST(Cancel, OnAHandleThatDoesNotWaitRefusesTheNextCall) {
  queue q = make(small());
  ASSERT_TRUE(q.send_copy("x", 1));
  auto held = q.receive();
  ASSERT_TRUE(held);
  q.cancel();
  EXPECT_EQ(q.send_copy("x", 1).error().code, errc::cancelled);
  EXPECT_TRUE(held->release());
  EXPECT_TRUE(q.close_producer());
}

// Waits in receive() on an empty queue, without a deadline, until the thread is cancelled.
void* receive_for_ever(void* handle) {
  (void)static_cast<queue*>(handle)->receive();
  return nullptr;
}

TEST(PthreadCancel, EndsAWaitAndTheHandleStillNoticesDeaths) {
  options wanted = small();
  wanted.after_death = on_death::redeliver;
  queue q = make(wanted);
  for (int round = 0; round < 3; ++round) {
    pthread_t waiter{};
    ASSERT_EQ(pthread_create(&waiter, nullptr, receive_for_ever, &q), 0);
    wait_until(q, &waits::waits_for_message);
    ASSERT_EQ(pthread_cancel(waiter), 0);
    void* how = nullptr;
    ASSERT_EQ(pthread_join(waiter, &how), 0);
    EXPECT_EQ(how, PTHREAD_CANCELED);
    // The queue no longer shows the cancelled thread as waiting.
    EXPECT_FALSE(q.inspect().participants.at(0).waits_for_message);
  }
  ASSERT_TRUE(q.send_copy("x", 1));
  test::die_with_a_message(q);
  // This call must notice the death itself, because no other process looks for deaths.
  auto got = q.receive(deadline::after(10s));
  ASSERT_TRUE(got) << got.error().text;
  EXPECT_EQ(got->deliveries(), 2u);
}

// The request to cancel is pending when the thread calls receive(). receive() calls read() to make the descriptor
// unreadable, and read() is a cancellation point. The thread must still get the message before it ends.
TEST(PthreadCancel, AMessageIsNotLostIfTheHandleHasADescriptor) {
  queue q = make(small());
  ASSERT_TRUE(q.message_fd());
  ASSERT_TRUE(q.send_copy("x", 1));
  pollfd ask{q.message_fd().value(), POLLIN, 0};
  ASSERT_EQ(poll(&ask, 1, -1), 1);
  struct shared {
    queue* q;
    message got;
  } both{&q, {}};
  pthread_t receiver{};
  const auto receive = [](void* of) -> void* {
    auto& to = *static_cast<shared*>(of);
    pthread_cancel(pthread_self());
    auto got = to.q->receive(deadline::now());
    if (got) to.got = std::move(*got);
    pthread_testcancel();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&receiver, nullptr, receive, &both), 0);
  void* how = nullptr;
  ASSERT_EQ(pthread_join(receiver, &how), 0);
  EXPECT_EQ(how, PTHREAD_CANCELED);
  EXPECT_TRUE(both.got);
  EXPECT_EQ(q.inspect().held, 1u);
}

// A thread is cancelled while it waits for the feeder. The handle and the feeder go on.
TEST(PthreadCancel, EndsTheWaitForAFeederAndTheHandleStillWorks) {
  options wanted = small();
  wanted.feeding = feed::thread;
  queue q = make(wanted);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(q.send_copy(&i, sizeof i));
  for (const bool closes : {false, true}) {
    struct shared {
      queue* q;
      bool closes;
    } both{&q, closes};
    const auto wait = [](void* of) -> void* {
      auto& from = *static_cast<shared*>(of);
      if (from.closes)
        (void)from.q->close_producer();
      else
        (void)from.q->flush();
      return nullptr;
    };
    pthread_t waiter{};
    ASSERT_EQ(pthread_create(&waiter, nullptr, wait, &both), 0);
    ASSERT_EQ(pthread_cancel(waiter), 0);
    void* how = nullptr;
    ASSERT_EQ(pthread_join(waiter, &how), 0);
    EXPECT_EQ(how, PTHREAD_CANCELED);
    EXPECT_EQ(q.flush(deadline::now()).error().code, errc::timeout);
  }
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(q.receive(deadline::after(20s)));
  const auto told = q.close_producer(deadline::after(20s));
  ASSERT_TRUE(told) << told.error().text;
  EXPECT_EQ(told.value().sent, 4u);
}

}  // namespace
}  // namespace forksight::ipc
