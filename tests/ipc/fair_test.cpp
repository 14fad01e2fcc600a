// Who waits is served in turn: many that want room, or messages, and one of whom has the processor already.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <vector>

#include "child.hpp"
#include "invariants.hpp"

namespace forksight::ipc {
namespace {

using namespace std::chrono_literals;
using test::child;
using clock = deadline::clock;

constexpr std::size_t kMany = 8;

struct counts {
  std::atomic<std::uint64_t> of[kMany];
};

std::unique_ptr<counts, void (*)(counts*)> shared_counts() {
  void* const memory = mmap(nullptr, sizeof(counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return {new (memory) counts{}, [](counts* what) { munmap(what, sizeof *what); }};
}

queue make(std::uint32_t room) {
  options wanted;
  wanted.slots = room;
  wanted.buffers = room;
  wanted.buffer_bytes = 64;
  wanted.spin_us = 0;
  auto made = queue::create(wanted);
  if (!made) ADD_FAILURE() << made.error().text;
  return std::move(made).value();
}

// The smallest share, as part of what each would have if all had the same.
double smallest_share(const counts& all) {
  std::vector<std::uint64_t> shares;
  for (const auto& one : all.of) shares.push_back(one.load());
  const std::uint64_t sum = std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
  if (sum < 100 * kMany) return 0;
  return static_cast<double>(*std::ranges::min_element(shares)) * kMany / static_cast<double>(sum);
}

// `side`: what each of eight does for ever; `other`: what this process does meanwhile. The best of some runs: a machine
// that gives one of them no processor makes a share small, too, but not that of the same one each time.
template <class Side, class Other>
double share_of_eight(Side side, Other other) {
  double best = 0;
  for (int run = 0; run < 3 && best < 0.5; ++run) {
    queue q = make(8);
    const auto all = shared_counts();
    std::vector<std::unique_ptr<child>> members;
    for (std::size_t i = 0; i < kMany; ++i) {
      members.push_back(std::make_unique<child>([&, i] {
        auto own = q.reattach_after_fork();
        while (own && side(*own)) ++all->of[i];
        return 0;
      }));
    }
    // From when all take part, so that who came first has no start.
    while (std::ranges::any_of(all->of, [](const auto& one) { return one.load() == 0; })) other(q);
    for (auto& one : all->of) one = 0;
    for (const auto end = clock::now() + 1s; clock::now() < end;) other(q);
    best = std::max(best, smallest_share(*all));
  }
  return best;
}

TEST(Fair, EightProducersOfAFullQueueSendTheSame) {
  EXPECT_GE(share_of_eight([](queue& own) { return test::send_number(own, 1, deadline::after(20s)); },
                           [](queue& q) { (void)q.receive(deadline::after(1s)); }),
            0.5);
}

TEST(Fair, EightConsumersOfAnEmptyQueueReceiveTheSame) {
  EXPECT_GE(share_of_eight([](queue& own) { return own.receive(deadline::after(20s)).has_value(); },
                           [](queue& q) { (void)test::send_number(q, 1, deadline::after(1s)); }),
            0.5);
}

}  // namespace
}  // namespace forksight::ipc
