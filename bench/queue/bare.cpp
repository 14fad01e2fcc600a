// The bare ring. Its time is the lower bound for all transports. The ring has one producer and one consumer. Its slots
// are the buffers themselves. A side that waits sleeps on a futex without a timeout. The ring checks nothing and
// recovers nothing: if a process dies, the other process waits for ever.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>

#include "transport.hpp"

namespace forksight::bench {
namespace {

long futex(std::atomic<std::uint32_t>& word, int what, std::uint32_t value) {
  return syscall(SYS_futex, &word, what, value, nullptr, nullptr, 0);
}

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
  futex(sleeper.sleeps, FUTEX_WAKE, INT_MAX);
}

template <class Condition>
void wait_until(Sleeper& sleeper, unsigned spin_us, Condition is_met) {
  if (is_met()) return;
  if (spin_us != 0) {
    using clock = std::chrono::steady_clock;
    const auto end = clock::now() + std::chrono::microseconds(spin_us);
    for (unsigned round = 1; spin_us == kSpinsForEver || round % 16 != 0 || clock::now() < end; ++round) {
      relax();
      if (is_met()) return;
    }
  }
  for (;;) {
    sleeper.sleeps.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the fence of wake()
    if (is_met()) break;
    futex(sleeper.sleeps, FUTEX_WAIT, 1);
    if (is_met()) break;
  }
  sleeper.sleeps.store(0, std::memory_order_relaxed);
}

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
    wait_until(lane.producer, shape_.spin_us,
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
    wait_until(lane.consumer, shape_.spin_us, [&] { return lane.tail.load(std::memory_order_acquire) != head; });
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

const Registered kBare{{"bare", [] { return std::make_unique<Bare>(); }, false, true, false}};

}  // namespace
}  // namespace forksight::bench
