// Tests that a consumer takes the messages of one producer in the order in which they were sent. A producer sends two
// messages, and a consumer takes one. The test interrupts the producer at one step, and then the consumer at one step.
// Then the producer runs to its end. After that, the consumer runs to its end. The test tries every pair of steps.
//   This file and ring.cpp are compiled with FORKSIGHT_IPC_MODEL. So model_step() is called before each access to
// shared memory on which a decision depends.
#include <gtest/gtest.h>
#include <ucontext.h>

#include <cstdint>
#include <functional>
#include <string>

#include "local_ring.hpp"

namespace forksight::ipc::test {
namespace {

using namespace detail;

// A function with a stack of its own. It can be interrupted before each access to shared memory, and continued later.
class fiber {
 public:
  explicit fiber(std::function<void()> body) : body_(std::move(body)) {
    getcontext(&own_);
    own_.uc_stack = {stack_, 0, sizeof stack_};
    own_.uc_link = &caller_;
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    makecontext(&own_, reinterpret_cast<void (*)()>(&fiber::start), 2, static_cast<unsigned>(self),
                static_cast<unsigned>(self >> 32));
  }
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;

  // Continues the function for `steps` accesses to shared memory. Returns false if the function has ended.
  bool go_on(std::uint64_t steps) {
    left_ = steps;
    if (!is_over_) {
      running = this;
      swapcontext(&caller_, &own_);
      running = nullptr;
    }
    return !is_over_;
  }
  void step() {
    if (left_-- == 0) swapcontext(&own_, &caller_);
  }
  static inline fiber* running = nullptr;

 private:
  static void start(unsigned low, unsigned high) {
    auto* const self = reinterpret_cast<fiber*>(std::uintptr_t{low} | std::uintptr_t{high} << 32);
    self->body_();
    self->is_over_ = true;
  }
  std::function<void()> body_;
  ucontext_t own_{}, caller_{};
  std::uint64_t left_ = 0;
  bool is_over_ = false;
  alignas(64) char stack_[64 * 1024];
};

constexpr std::uint64_t kToTheEnd = ~std::uint64_t{0} >> 1;

// Interrupts the producer after `sent_steps` accesses, and then the consumer after `taken_steps` accesses. Sets `first`
// to the number of the message that the consumer took, or to 0 if it took none. Returns false if the producer or the
// consumer ended before it could be interrupted.
bool take_first(std::uint64_t sent_steps, std::uint64_t taken_steps, bool redelivers, std::uint64_t& first) {
  local_ring<4, 4, 2> memory;
  const ring of = memory.begin(redelivers);
  fiber producer([&] {
    for (std::uint64_t number = 1; number <= 2; ++number) {
      claimed mine;
      ASSERT_EQ(test::claim(of, owner_id(0, 0), mine), step_result::done);
      ASSERT_EQ(of.publish(owner_id(0, 0), 1, mine, number, 0), step_result::done);
    }
  });
  fiber consumer([&] {
    taken message;
    take_hint none;
    const step_result got = of.take(owner_id(1, 0), 1, 0, none, message);
    ASSERT_TRUE(got == step_result::done || got == step_result::none);
    first = got == step_result::done ? message.length : 0;
  });
  const bool is_whole = producer.go_on(sent_steps) && consumer.go_on(taken_steps);
  producer.go_on(kToTheEnd);
  consumer.go_on(kToTheEnd);
  return is_whole;
}

TEST(Order, OfTheMessagesOfOneProducerIsKept) {
  for (const bool redelivers : {false, true}) {
    std::uint64_t orders = 0, found = 0;
    std::uint64_t first = 0;
    for (std::uint64_t sent = 0;; ++sent) {
      std::uint64_t taken = 0;
      for (; take_first(sent, taken, redelivers, first); ++taken, ++orders) {
        ASSERT_NE(first, 2u) << "sent " << sent << " steps, then taken " << taken;
        found += first;
      }
      if (taken == 0) break;
    }
    EXPECT_GT(orders, 100u);
    EXPECT_GT(found, 20u);
  }
}

}  // namespace
}  // namespace forksight::ipc::test

namespace forksight::ipc::detail {

void model_step(const void* /*word*/) {
  if (test::fiber::running != nullptr) test::fiber::running->step();
}
void model_saw(std::uint64_t /*value*/) {}

}  // namespace forksight::ipc::detail
