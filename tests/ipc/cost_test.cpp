// Tests that two costs do not grow with the number of members: the time of a call that finds nothing to do, and the
// number of times that a waiting process wakes up.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "child.hpp"
#include "invariants.hpp"

namespace forksight::ipc {
namespace {

using namespace std::chrono_literals;
using test::baton;
using test::child;
using clock = deadline::clock;

queue make(std::uint32_t members) {
  options wanted;
  wanted.slots = 4;
  wanted.buffers = 4;
  wanted.buffer_bytes = 64;
  wanted.max_participants = members;
  auto made = queue::create(wanted);
  if (!made) ADD_FAILURE() << made.error().text;
  return std::move(made).value();
}

// Returns the time of one call, as the average of the fastest of many batches. Other work on the machine can only make
// a batch slower.
template <class Call>
clock::duration cost_of(Call call) {
  constexpr int kCalls = 200;
  clock::duration best = clock::duration::max();
  for (int batch = 0; batch < 50; ++batch) {
    const auto start = clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    best = std::min(best, (clock::now() - start) / kCalls);
  }
  return best;
}

// A call takes 0.03 us in the release build. It took 8 ms when each call still examined and described all members.
TEST(Cost, OfACallThatFindsNothingDoesNotGrowWithTheMembers) {
  constexpr auto kAtMost = 20us;  // also with sanitizers
  queue q = make(255);
  std::vector<queue> all;
  for (int i = 0; i < 249; ++i) all.push_back(std::move(queue::attach(q.fd())).value());
  queue& last = all.back();
  EXPECT_LT(cost_of([&] { EXPECT_EQ(last.receive(deadline::now()).error().code, errc::timeout); }), kAtMost);
  std::vector<loan> lent;
  for (int i = 0; i < 4; ++i) lent.push_back(std::move(q.acquire()).value());
  EXPECT_LT(cost_of([&] { EXPECT_EQ(last.acquire(deadline::now()).error().code, errc::timeout); }), kAtMost);
}

// A waiting process looks for deaths when it wakes up. A process that never waits must notice deaths, too.
TEST(Cost, AProcessThatNeverWaitsAlsoNoticesADeath) {
  queue q = make(16);
  const baton holds;
  child holder([&] {
    auto own = q.reattach_after_fork();
    std::vector<loan> held;
    for (int i = 0; i < 4; ++i) held.push_back(std::move(own->acquire()).value());
    holds.pass();
    pause();
    return 0;
  });
  holds.take();
  EXPECT_FALSE(q.acquire(deadline::now()));
  holder.kill_and_wait();
  const auto start = clock::now();
  bool got = false;
  while (!got && clock::now() - start < 20s) got = q.acquire(deadline::now()).has_value();
  EXPECT_TRUE(got);
}

unsigned long times_asleep(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("voluntary_ctxt_switches:")) return std::stoul(line.substr(line.find(':') + 1));
  }
  return 0;
}

// In an earlier version, each waiting process woke up 20 times a second and examined all others. So 60 processes
// together woke up 1,200 times a second, and made 72,000 examinations a second.
TEST(Cost, ManyWaitingProcessesRarelyWakeUp) {
  constexpr std::size_t kWaiters = 60;
  queue q = make(64);
  std::vector<std::unique_ptr<child>> all;
  for (std::size_t i = 0; i < kWaiters; ++i) {
    all.push_back(std::make_unique<child>([&] {
      auto own = q.reattach_after_fork();
      if (!own) return 1;
      return own->receive().has_value() ? 0 : 2;
    }));
  }
  const auto waiting = [&] {
    const auto seen = q.inspect().participants;
    return std::ranges::count_if(seen, [](const auto& one) { return one.waits_for_message; });
  };
  while (waiting() != kWaiters) std::this_thread::sleep_for(1ms);
  // The first sleeps of a wait are short. Wait until they are over.
  std::this_thread::sleep_for(1s);
  const auto asleep = [&] {
    unsigned long sum = 0;
    for (const auto& one : all) sum += times_asleep(one->pid());
    return sum;
  };
  const unsigned long before = asleep();
  std::this_thread::sleep_for(1s);
  EXPECT_LE(asleep() - before, 4 * kWaiters);
}

TEST(Cost, TheLongestDurationDoesNotExpireAtOnce) {
  queue q = make(16);
  EXPECT_TRUE(deadline::after(std::chrono::nanoseconds::max()).is_never());
  EXPECT_FALSE(deadline::after(1h).is_never());
  std::thread sends([&] {
    std::this_thread::sleep_for(20ms);
    EXPECT_TRUE(test::send_number(q, 1));
  });
  EXPECT_TRUE(q.receive(deadline::after(std::chrono::nanoseconds::max())));
  sends.join();
}

}  // namespace
}  // namespace forksight::ipc
