// Tests a segment into which a hostile process has written. The tests change each byte while no process uses the queue,
// overwrite regions, and write words at random while others work. A call must then do its work or return an error. It
// must not crash, and it must end in time.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "invariants.hpp"
#include "layout.hpp"

namespace forksight::ipc {
namespace {

using namespace std::chrono_literals;
using clock = deadline::clock;

queue make(on_death policy) {
  options wanted;
  wanted.slots = 4;
  wanted.buffers = 4;
  wanted.buffer_bytes = 64;
  wanted.after_death = policy;
  wanted.max_participants = 4;
  wanted.spin_us = 0;
  auto made = queue::create(wanted);
  if (!made) ADD_FAILURE() << made.error().text;
  return std::move(made).value();
}

// A second, writable mapping of the segment without its payload. A test uses it to write as a hostile process would.
class stolen {
 public:
  explicit stolen(const queue& of) : size_(test::words(of).size()) {
    bytes_ = static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, of.fd(), 0));
    if (bytes_ == MAP_FAILED) std::abort();
  }
  stolen(const stolen&) = delete;
  stolen& operator=(const stolen&) = delete;
  ~stolen() { munmap(bytes_, size_); }
  char& at(std::size_t offset) { return bytes_[offset]; }
  detail::header& head() { return *reinterpret_cast<detail::header*>(bytes_); }
  std::size_t size() const { return size_; }
  // Returns the offsets of all bytes that the layout uses. The rest of the first page, after the header, is empty.
  std::vector<std::size_t> used() const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < size_; ++i) {
      if (i < sizeof(detail::header) || i >= detail::kPage) found.push_back(i);
    }
    return found;
  }

 private:
  std::size_t size_;
  char* bytes_ = nullptr;
};

// The deadline that the tests give to a call that may wait.
constexpr auto kCallLimit = 200us;
// A call that takes longer than this counts as one that does not end. The limit is long, because the machine may run
// other processes meanwhile.
constexpr auto kAtMost = 30s;

template <class Call>
void in_time(const char* what, Call call) {
  const auto start = clock::now();
  call();
  EXPECT_LT(clock::now() - start, kAtMost) << what;
}

void use(queue& one) {
  in_time("send", [&] { (void)one.send_copy("x", 1, deadline::after(kCallLimit)); });
  in_time("receive", [&] {
    auto got = one.receive(deadline::after(kCallLimit));
    if (!got) return;
    // Every byte of the message must be readable, whatever length the segment gives for it.
    volatile char sum = 0;
    for (std::size_t i = 0; i < got->size(); ++i)
      sum = static_cast<char>(sum + static_cast<const char*>(got->data())[i]);
    (void)got->release();
  });
  in_time("park", [&] {
    auto got = one.receive(deadline::now());
    if (got) (void)got->park();
  });
  in_time("receive_parked", [&] {
    auto got = one.receive_parked();
    if (got) (void)got->requeue();
  });
  in_time("requeue", [&] { (void)one.requeue(); });
  in_time("acquire", [&] { (void)one.acquire(deadline::after(kCallLimit)); });
  in_time("recover", [&] { (void)one.recover(); });
  in_time("inspect", [&] { (void)one.inspect(); });
}

// Changes one byte while two messages are queued, one message is held, and one buffer is lent. Then uses the queue.
void with_a_byte_changed(on_death policy, std::size_t offset, char by) {
  queue q = make(policy);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(q.send_copy("abc", 3));
  auto held = q.receive();
  auto lent = q.acquire();
  ASSERT_TRUE(held);
  ASSERT_TRUE(lent);
  stolen memory(q);
  memory.at(offset) = static_cast<char>(memory.at(offset) ^ by);
  in_time("inspect", [&] { (void)inspect(q.fd()); });
  in_time("attach", [&] {
    auto second = queue::attach(q.fd());
    if (second) use(*second);
  });
  in_time("send", [&] { (void)q.send(std::move(*lent), 3, deadline::after(kCallLimit)); });
  (void)held->release();
  use(q);
}

TEST(Hostile, EachByteChangedAtRest) {
  std::mt19937 random(1);
  const std::vector<std::size_t> offsets = stolen(make(on_death::drop)).used();
  for (const std::size_t offset : offsets) {
    const char by = static_cast<char>(1u << (random() % 8));
    SCOPED_TRACE("offset " + std::to_string(offset) + " by " + std::to_string(by));
    with_a_byte_changed(offset % 2 == 0 ? on_death::drop : on_death::redeliver, offset, by);
    if (HasFailure()) return;
  }
}

// A region is overwritten by random bytes, by zeros, or by bytes of 0xff.
TEST(Hostile, RegionsOverwritten) {
  std::mt19937 random(2);
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    queue q = make(round % 2 == 0 ? on_death::drop : on_death::redeliver);
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(q.send_copy("abc", 3));
    stolen memory(q);
    const std::size_t from = sizeof(std::uint64_t) * (random() % (memory.size() / 8));
    const std::size_t size = std::min<std::size_t>(1u << (random() % 12), memory.size() - from);
    for (std::size_t i = 0; i < size; ++i) {
      memory.at(from + i) = static_cast<char>(round % 3 == 0 ? random() : round % 3 == 1 ? 0 : 255);
    }
    in_time("attach", [&] {
      auto second = queue::attach(q.fd());
      if (second) use(*second);
    });
    use(q);
    if (HasFailure()) return;
  }
}

// The environment variable FORKSIGHT_IPC_EXECUTIONS gives the least number of operations. The default is 20,000. How
// many operations succeed depends on the machine. So the test goes on until enough of them have succeeded and at least
// one has found the queue corrupt. The test gives up after fifty times the least number.
TEST(Hostile, WordsWrittenAtRandomWhileOthersWork) {
  const char* const wanted = std::getenv("FORKSIGHT_IPC_EXECUTIONS");
  const unsigned long executions = wanted != nullptr ? std::strtoul(wanted, nullptr, 10) : 20'000;
  const unsigned long wanted_successes = 100, most = 50 * executions;
  std::atomic<unsigned long> done{0}, refused{0}, succeeded{0}, corrupt{0};
  const auto is_enough = [&] { return done >= executions && succeeded >= wanted_successes && corrupt != 0; };
  for (unsigned seed = 0; !is_enough() && done + refused < most; ++seed) {
    queue q = make(seed % 2 == 0 ? on_death::drop : on_death::redeliver);
    stolen memory(q);
    std::atomic<bool> is_over{false};
    std::thread peer([&] {
      std::mt19937_64 random(seed);
      const std::vector<std::size_t> places = memory.used();
      while (!is_over) {
        // The thread does not change the constant part of the header, because each process uses its own copy of that
        // part. The thread clears the marks of a poisoned or closed queue, so that the other threads can go on.
        const std::size_t offset = places[random() % places.size()] & ~std::size_t{3};
        if (offset >= offsetof(detail::header, tail)) {
          auto* const word = reinterpret_cast<std::atomic<std::uint32_t>*>(&memory.at(offset));
          const std::uint32_t before = word->load(std::memory_order_relaxed);
          const std::uint64_t by = random();
          word->store(
              by % 3 == 0 ? static_cast<std::uint32_t>(by >> 32) : before + static_cast<std::uint32_t>(by % 7) - 3,
              std::memory_order_relaxed);
        }
        memory.head().poisoned.store_relaxed(0);
        memory.head().status.store_relaxed(0);
        for (std::uint64_t pause = random() % 4096; pause != 0; --pause) asm volatile("" ::: "memory");
      }
    });
    const auto work = [&] {
      auto own = queue::attach(q.fd());
      for (int i = 0; i < 200; ++i) {
        if (!own) {
          own = queue::attach(q.fd());
          ++refused;
          continue;
        }
        const auto start = clock::now();
        const auto until = i % 16 == 0 ? deadline::after(1ms) : deadline::now();
        const auto sent = own->send_copy("abc", 3, until);
        auto got = own->receive(until);
        if (got) (void)(i % 8 == 0 ? got->park() : got->release());
        if (i % 16 == 0) (void)own->requeue();
        if (i % 32 == 0) (void)own->inspect();
        done += 2;
        if (sent || got) ++succeeded;
        if (!sent && sent.error().code == errc::corrupt) ++corrupt;
        if (!sent && sent.error().code == errc::evicted) own = queue::attach(q.fd());
        EXPECT_LT(clock::now() - start, kAtMost);
      }
    };
    std::thread first(work), second(work);
    first.join();
    second.join();
    is_over = true;
    peer.join();
    if (HasFailure()) return;
  }
  EXPECT_GE(done, executions);
  EXPECT_GE(succeeded, wanted_successes);
  EXPECT_GT(corrupt, 0u);
  std::printf("%lu operations, %lu failures to attach, %lu rounds with a success, %lu corrupt\n", done.load(),
              refused.load(), succeeded.load(), corrupt.load());
}

}  // namespace
}  // namespace forksight::ipc
