// This file has two bare rings, "bare" and "bare, timed". The time of "bare" is the lower bound for all transports. The
// ring "bare" has one producer and one consumer. Its slots are the buffers themselves. While a side waits, it sleeps on
// a futex without a timeout. The ring checks nothing and recovers nothing: if a process dies, the other process waits
// for ever.
//
// "bare, timed" differs in one respect: each sleep has a timeout of 50 ms, as in forksight's queue. The time of "bare,
// timed" is the lower bound for a transport in which the waiters themselves look for dead processes, so that no extra
// thread is needed.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>

#include "transport.hpp"

namespace forksight::bench {
namespace {

void wake_sleepers(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// If the word is 1, sleeps until a wake-up.
struct Untimed {
  static void sleep(std::atomic<std::uint32_t>& word) { syscall(SYS_futex, &word, FUTEX_WAIT, 1, nullptr, nullptr, 0); }
};

// If the word is 1, sleeps until a wake-up, but at most 50 ms. The timeout is an absolute time of the coarse clock,
// which is the cheapest kind.
struct Timed {
  static void sleep(std::atomic<std::uint32_t>& word) {
    constexpr long kTimeoutNs = 50'000'000, kSecondNs = 1'000'000'000;
    timespec until{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &until);
    until.tv_nsec += kTimeoutNs;
    if (until.tv_nsec >= kSecondNs) {
      until.tv_nsec -= kSecondNs;
      ++until.tv_sec;
    }
    syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 1, &until, nullptr, FUTEX_BITSET_MATCH_ANY);
  }
};

// The word on which one side of the ring sleeps. If a side finds nothing to do, it sets the word, checks once more, and
// sleeps.
struct alignas(64) Sleeper {
  std::atomic<std::uint32_t> sleeps;
};

struct Lane {
  alignas(64) std::atomic<std::uint64_t> tail;
  alignas(64) std::atomic<std::uint64_t> head;
  Sleeper consumer, producer;
};

void wake(Sleeper& sleeper) {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence of wait_until()
  if (sleeper.sleeps.load(std::memory_order_relaxed) == 0) return;
  sleeper.sleeps.store(0, std::memory_order_relaxed);
  wake_sleepers(sleeper.sleeps);
}

template <class Sleep, class Condition>
void wait_until(Sleeper& sleeper, unsigned spin_us, Condition is_met) {
  if (is_met()) return;
  if (spin_us != 0) {
    using clock = std::chrono::steady_clock;
    const auto end = clock::now() + std::chrono::microseconds(spin_us);
    for (unsigned round = 1; spin_us == kSpinsForEver || round % 16 != 0 || clock::now() < end; ++round) {
      pause_cpu();
      if (is_met()) return;
    }
  }
  for (;;) {
    sleeper.sleeps.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence of wake()
    if (is_met()) break;
    Sleep::sleep(sleeper.sleeps);
    if (is_met()) break;
  }
  sleeper.sleeps.store(0, std::memory_order_relaxed);
}

template <class Sleep>
class Bare final : public Transport {
 public:
  void prepare(const Shape& shape) override {
    shape_ = shape;
    stride_ = (shape.bytes + 4095) & ~std::size_t{4095};
    lanes_ = static_cast<Lane*>(shared_memory(2 * sizeof(Lane)));
    for (auto& payload : payload_) payload = static_cast<char*>(shared_memory(stride_ * shape.depth));
  }
  void join(Side side) override { out_ = side == Side::kFirst ? 0 : 1; }
  void* loan() override {
    Lane& lane = lanes_[out_];
    const std::uint64_t tail = lane.tail.load(std::memory_order_relaxed);
    wait_until<Sleep>(lane.producer, shape_.spin_us,
                      [&] { return tail - lane.head.load(std::memory_order_acquire) < shape_.depth; });
    return payload_[out_] + tail % shape_.depth * stride_;
  }
  void send() override {
    Lane& lane = lanes_[out_];
    lane.tail.store(lane.tail.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    wake(lane.consumer);
  }
  const void* receive() override {
    Lane& lane = lanes_[1 - out_];
    const std::uint64_t head = lane.head.load(std::memory_order_relaxed);
    wait_until<Sleep>(lane.consumer, shape_.spin_us, [&] { return lane.tail.load(std::memory_order_acquire) != head; });
    return payload_[1 - out_] + head % shape_.depth * stride_;
  }
  void release() override {
    Lane& lane = lanes_[1 - out_];
    lane.head.store(lane.head.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    wake(lane.producer);
  }

 private:
  Shape shape_;
  std::size_t stride_ = 0;
  Lane* lanes_ = nullptr;
  char* payload_[2] = {};
  int out_ = 0;
};

const Registered kBare{{"bare", [] { return std::make_unique<Bare<Untimed>>(); }, false, true, false}};
const Registered kTimed{{"bare, timed", [] { return std::make_unique<Bare<Timed>>(); }, false, true, false}};

}  // namespace
}  // namespace forksight::bench
