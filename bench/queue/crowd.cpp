#include "crowd.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

namespace forksight::bench {
namespace {

using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// A process counts as hung if it has not continued after this time. The time exceeds the longest recovery time that a
// transport promises.
constexpr auto kHangTime = 2s;

struct alignas(64) Count {
  std::atomic<std::uint64_t> done;
};

struct Member {
  pid_t pid;
  bool is_producer;
  Count* moved;
  std::uint64_t at_kill = 0;
  bool has_moved() const { return moved->done.load() > at_kill + 1; }
};

[[noreturn]] void take_part(Transport& over, const Shape& shape, const Member& me) {
  over.join(me.is_producer ? Side::kFirst : Side::kSecond);
  for (;;) {
    if (me.is_producer) {
      *static_cast<std::uint64_t*>(over.loan()) = shape.bytes;
      over.send();
    } else {
      if (*static_cast<const std::uint64_t*>(over.receive()) != shape.bytes)
        fail("a received message has wrong content");
      over.release();
    }
    me.moved->done.fetch_add(1);
  }
}

// Waits until the condition is true. Returns false if it does not become true within the time `within`.
template <class Condition>
bool becomes_true(clock::duration within, Condition condition) {
  for (const auto end = clock::now() + within; clock::now() < end; std::this_thread::sleep_for(200us)) {
    if (condition()) return true;
  }
  return condition();
}

std::uint64_t received(const std::vector<Member>& all) {
  std::uint64_t total = 0;
  for (const Member& one : all) total += one.is_producer ? 0 : one.moved->done.load();
  return total;
}

void end(std::vector<Member>& all) {
  for (const Member& one : all) kill(one.pid, SIGKILL);
  for (const Member& one : all) waitpid(one.pid, nullptr, 0);
}

int measure(std::vector<Member>& all, double seconds) {
  const std::uint64_t before = received(all);
  const auto start = clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const std::uint64_t moved = received(all) - before;
  const double took = std::chrono::duration<double>(clock::now() - start).count();
  end(all);
  std::printf("{\"value\": %.9g}\n", moved == 0 ? took : took / static_cast<double>(moved));
  return 0;
}

// Kills the first process of the kind `victim`, at a random instant of the next 20 ms.
int kill_one(std::vector<Member>& all, const Crowd& crowd) {
  std::mt19937 random(crowd.seed);
  const auto victim = std::ranges::find(all, crowd.victim == "producer", &Member::is_producer);
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
  kill(victim->pid, SIGKILL);
  waitpid(victim->pid, nullptr, 0);
  all.erase(victim);
  for (Member& one : all) one.at_kill = one.moved->done.load();
  const auto start = clock::now();
  // If one of the other processes does not continue, the trial counts as hung.
  const bool hangs = !becomes_true(kHangTime, [&] { return std::ranges::all_of(all, &Member::has_moved); });
  const double took = std::chrono::duration<double, std::milli>(clock::now() - start).count();
  end(all);
  std::printf("{\"hung\": %s, \"ms\": %.3f}\n", hangs ? "true" : "false", took);
  return 0;
}

}  // namespace

int run_crowd(Transport& over, const Crowd& crowd) {
  Shape shape = crowd.shape;
  shape.processes = crowd.producers + crowd.consumers;
  over.prepare(shape);
  auto* const counts = static_cast<Count*>(shared_memory((crowd.producers + crowd.consumers) * sizeof(Count)));
  std::vector<Member> all;
  const pid_t parent = getpid();
  for (unsigned i = 0; i < crowd.producers + crowd.consumers; ++i) {
    Member one{0, i < crowd.producers, &counts[i]};
    one.pid = static_cast<pid_t>(must(fork(), "fork"));
    if (one.pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      take_part(over, crowd.shape, one);
    }
    all.push_back(one);
  }
  if (!becomes_true(20s,
                    [&] { return std::ranges::all_of(all, [](const Member& one) { return one.moved->done > 2; }); })) {
    end(all);
    std::fprintf(stderr, "bench_queue: not all processes have moved messages in time\n");
    return 2;
  }
  return crowd.victim.empty() ? measure(all, crowd.seconds) : kill_one(all, crowd);
}

}  // namespace forksight::bench
