// soak [--kills N] [--seed N] kills producers and consumers at random instants, and starts others in their places. Each
// process writes into a table outside the queue what it sends and receives. soak checks with this table that messages
// are lost or delivered twice only where the policy permits it. It also checks that no call takes more than a second
// while others receive fewer than 100 messages.
//
// Meanwhile other things happen, too. Processes are stopped and continued. Some call exec while they hold a loan or a
// message. Some fork children that never use the queue and outlive them. Some consumers receive in a thread that is
// cancelled again and again. None of this may cause the loss of a message, with one exception: a process that calls
// exec counts as killed.
//
// Exit status: 0: all is well; 1: something is broken; 2: the set-up failed.
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "child.hpp"
#include "invariants.hpp"

namespace forksight::ipc::test {
namespace {

using namespace std::chrono_literals;
using clock = deadline::clock;

constexpr std::uint32_t kMaxSide = 8;
constexpr std::uint32_t kMaxIds = 1u << 22;

// A table of what happened to each message. It is in shared memory outside the queue. Its words are atomic, so no
// process waits for another one to use it.
struct ledger {
  std::atomic<std::uint32_t> next_id;
  std::atomic<std::uint64_t> longest;    // long_call::bits() of the longest call
  std::atomic<std::uint32_t> overtaken;  // calls of more than a second in which others received at least 100 messages
  std::atomic<std::uint32_t> problems;
  std::atomic<std::uint64_t> received;
  std::atomic<std::uint64_t> cancelled;  // threads that were cancelled in receive()
  // sending: kTrying before send(), kSent after it. taken, released: how often the message was received and released.
  struct message {
    std::atomic<std::uint8_t> sending, taken, released;
  } messages[kMaxIds];
};
constexpr std::uint8_t kTrying = 1, kSent = 2;

ledger* g_ledger = nullptr;

// How long a call took, and how many messages were received meanwhile. Both are packed into one number, so that one
// atomic word holds the longest call.
struct long_call {
  std::uint32_t us = 0, others = 0;
  bool sends = false;

  std::uint64_t bits() const {
    return std::uint64_t{us} << 32 | std::uint64_t{std::min(others, 0x7fffffffu)} << 1 | (sends ? 1u : 0u);
  }
  static long_call of(std::uint64_t bits) {
    return {static_cast<std::uint32_t>(bits >> 32), static_cast<std::uint32_t>(bits >> 1) & 0x7fffffff,
            (bits & 1) != 0};
  }
};

struct waiting {
  clock::time_point since = clock::now();
  std::uint64_t received = g_ledger->received;
};

// Records how long a call took. Many processes share few buffers, so a call may wait while others are served many
// times. But a call must not take long while others receive few messages.
void note_wait(const waiting& from, bool sends) {
  const auto us = static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(clock::now() - from.since).count());
  const std::uint64_t others = g_ledger->received - from.received;
  const std::uint64_t mine = long_call{us, static_cast<std::uint32_t>(others), sends}.bits();
  std::uint64_t before = g_ledger->longest.load();
  while (before < mine && !g_ledger->longest.compare_exchange_weak(before, mine)) {
  }
  if (us <= 1'000'000) return;
  if (others >= 100) {
    g_ledger->overtaken.fetch_add(1);
    return;
  }
  std::printf("broken: a call took %.1f s, and meanwhile others received only %llu messages\n", us / 1e6,
              static_cast<unsigned long long>(others));
  g_ledger->problems.fetch_add(1);
}

int refused(const char* what, const error& why) {
  std::printf("broken: %s: %s\n", what, why.text.c_str());
  g_ledger->problems.fetch_add(1);
  return 1;
}

// SIGUSR1 sets this variable. The process then calls exec the next time that it holds a loan or a message.
volatile std::sig_atomic_t g_becomes_another = 0;

void become_another_if_told() {
  if (g_becomes_another == 0) return;
  execl("/bin/sleep", "sleep", "600", nullptr);
  std::abort();
}

// A pipe that shows the end of a round to the children that never use the queue. These children wait until no process
// has the pipe's writing end any more.
int g_round[2] = {-1, -1};

// Forks a child that never uses the queue. The child lives until the end of the round, even if this process is killed
// before.
void leave_a_child() {
  if (fork() != 0) return;
  close(g_round[1]);
  char byte = 0;
  while (read(g_round[0], &byte, 1) != 0) {
  }
  _exit(0);
}

int produce(const queue& inherited, bool leaves_a_child) {
  auto own = inherited.reattach_after_fork();
  if (!own) return refused("attach", own.error());
  if (leaves_a_child) leave_a_child();
  for (;;) {
    const waiting start;
    auto to = own->acquire(deadline::after(10s));
    if (!to) return refused("acquire", to.error());
    become_another_if_told();
    const std::uint32_t id = g_ledger->next_id.fetch_add(1);
    if (id >= kMaxIds) return 0;
    std::memcpy(to->data(), &id, sizeof id);
    g_ledger->messages[id].sending = kTrying;
    if (auto sent = own->send(std::move(*to), sizeof id, deadline::after(10s)); !sent) {
      return refused("send", sent.error());
    }
    g_ledger->messages[id].sending = kSent;
    note_wait(start, true);
  }
}

bool note_received(const message& got) {
  std::uint32_t id = kMaxIds;
  if (got.size() == sizeof id) std::memcpy(&id, got.data(), sizeof id);
  if (id >= kMaxIds || g_ledger->messages[id].sending == 0) return false;
  g_ledger->messages[id].taken.fetch_add(1);
  g_ledger->received.fetch_add(1);
  return true;
}

int receive_all(queue& own) {
  for (;;) {
    const waiting start;
    auto got = own.receive(deadline::after(10s));
    if (!got) return refused("receive", got.error());
    become_another_if_told();
    note_wait(start, false);
    if (!note_received(*got)) {
      std::printf("broken: a message came that nobody sent\n");
      g_ledger->problems.fetch_add(1);
      return 1;
    }
    std::uint32_t id = 0;
    std::memcpy(&id, got->data(), sizeof id);
    if (auto done = got->release(); !done) return refused("release", done.error());
    g_ledger->messages[id].released.fetch_add(1);
  }
}

// Receives in a thread, cancels the thread after a moment, and starts another one. The thread can only be cancelled in
// receive(), while it waits. So it holds no message then.
int receive_in_threads(queue& own) {
  std::mt19937 random(static_cast<unsigned>(getpid()));
  for (;;) {
    pthread_t thread{};
    const auto body = [](void* handle) -> void* {
      (void)receive_all(*static_cast<queue*>(handle));
      return handle;
    };
    if (pthread_create(&thread, nullptr, body, &own) != 0) return 1;
    const timespec moment{0, static_cast<long>(random() % 5'000'000)};
    nanosleep(&moment, nullptr);
    pthread_cancel(thread);
    void* how = nullptr;
    pthread_join(thread, &how);
    if (how != PTHREAD_CANCELED) return 1;
    g_ledger->cancelled.fetch_add(1);
  }
}

int consume(const queue& inherited, bool leaves_a_child, bool is_cancelled) {
  auto own = inherited.reattach_after_fork();
  if (!own) return refused("attach", own.error());
  if (leaves_a_child) leave_a_child();
  return is_cancelled ? receive_in_threads(*own) : receive_all(*own);
}

// Ends the children that never used the queue. All other processes of the round have ended. So this process is the
// parent of these children (PR_SET_CHILD_SUBREAPER), and has the only writing end of the pipe.
unsigned long end_idle_children() {
  unsigned long count = 0;
  for (int& end : g_round) close(std::exchange(end, -1));
  while (wait(nullptr) > 0 || errno == EINTR) ++count;
  return count;
}

// Stops the process until the consumers have received some messages, but at most for 60 ms.
void stop_for_a_moment(const child& victim, std::uint32_t messages) {
  victim.signal(SIGSTOP);
  const std::uint64_t goal = g_ledger->received + messages;
  const auto until = clock::now() + 60ms;
  while (g_ledger->received < goal && clock::now() < until) sched_yield();
  victim.signal(SIGCONT);
}

// Makes the process call exec the next time that it has a loan or a message. Returns when the process has called exec.
// Returns after a second at the latest, because the process may wait for a loan or a message for longer. The caller
// then kills the process.
void let_exec(const child& victim, const queue& of) {
  const auto is_member = [&] {
    const auto all = of.inspect().participants;
    return std::ranges::any_of(all, [&](const auto& one) {
      return one.pid == static_cast<std::uint32_t>(victim.pid()) && one.lives != snapshot::life::dead;
    });
  };
  victim.signal(SIGUSR1);
  const auto until = clock::now() + 1s;
  while (is_member() && clock::now() < until) sched_yield();
}

struct totals {
  unsigned long stops = 0, execs = 0, idle = 0, cancelled = 0;
  unsigned long kills = 0, sent = 0, received = 0, gone = 0, again = 0, overtaken = 0;
  long_call longest;
  long longest_recovery_us = 0;
  int broken = 0;
};

// Makes one queue, and kills `kills` of its processes.
void round_of(on_death policy, std::uint32_t producers, std::uint32_t consumers, unsigned long kills,
              std::mt19937& random, totals& all) {
  std::memset(static_cast<void*>(g_ledger), 0, offsetof(ledger, messages));
  options wanted;
  wanted.slots = 1u << (1 + random() % 4);
  wanted.buffers = producers + consumers + random() % 8;
  wanted.buffer_bytes = 64;
  wanted.after_death = policy;
  wanted.max_redeliver = 1'000'000;
  wanted.max_participants = 2 * kMaxSide + 4;
  auto made = queue::create(wanted);
  if (!made) {
    std::printf("broken: create: %s\n", made.error().text.c_str());
    ++all.broken;
    return;
  }
  queue q = std::move(made).value();
  if (pipe(g_round) != 0) std::abort();
  // Even if the only producer or the only consumer is killed, the queue must keep a member of each role. Otherwise
  // calls would report that no producer or no consumer is left. So this process keeps a handle of each role.
  std::vector<queue> keepers;
  for (const role as : {role::producer, role::consumer}) {
    auto keeper = queue::attach(q.fd(), as);
    if (!keeper) std::abort();
    keepers.push_back(std::move(keeper).value());
  }
  std::vector<std::unique_ptr<child>> places(producers + consumers);
  const auto start = [&](std::size_t i) {
    const bool leaves_a_child = random() % 4 == 0, is_cancelled = random() % 3 == 0;
    places[i] = std::make_unique<child>(
        [&] { return i < producers ? produce(q, leaves_a_child) : consume(q, leaves_a_child, is_cancelled); });
  };
  for (std::size_t i = 0; i < places.size(); ++i) start(i);
  unsigned long consumers_killed = 0;
  for (unsigned long n = 0; n < kills && g_ledger->problems == 0; ++n) {
    // Waits until the consumers have received 1 to 16 more messages. The kill follows at a random instant after that.
    const std::uint64_t goal = g_ledger->received + 1 + random() % 16;
    const auto patience = clock::now() + 5s;
    while (g_ledger->received < goal && clock::now() < patience) sched_yield();
    const bool has_moved = g_ledger->received >= goal;
    if (!has_moved) {
      std::printf("broken: the consumers received nothing, or too little, for 5 s\n");
      ++all.broken;
      break;
    }
    for (auto spin = random() % 20'000; spin != 0; --spin) asm volatile("" ::: "memory");
    const std::size_t victim = random() % places.size();
    if (random() % 4 == 0) {
      const std::size_t stopped = random() % places.size();
      stop_for_a_moment(*places[stopped], 1 + random() % 64);
      ++all.stops;
    }
    if (random() % 8 == 0) {
      let_exec(*places[victim], q);
      ++all.execs;
    }
    if (places[victim]->kill_and_wait() != 128 + SIGKILL) {
      std::printf("broken: a process had ended before it was killed\n");
      ++all.broken;
    }
    if (victim >= producers) ++consumers_killed;
    ++all.kills;
    if (n % 2 == 0) {
      const auto before = clock::now();
      q.recover();
      const auto took = std::chrono::duration_cast<std::chrono::microseconds>(clock::now() - before).count();
      all.longest_recovery_us = std::max(all.longest_recovery_us, static_cast<long>(took));
    }
    start(victim);
  }
  for (auto& place : places) place->kill_and_wait();
  keepers.clear();
  // The children that never used the queue still live. The killed processes that forked these children must not look
  // alive because of them.
  if (const std::size_t there = q.inspect().participants.size(); there > 1) {
    recover_dead(q, there - 1);
  }
  if (const std::size_t left = q.inspect().participants.size(); left != 1) {
    std::printf("broken: %zu dead processes have an entry still\n", left - 1);
    ++all.broken;
  }
  all.idle += end_idle_children();
  all.cancelled += g_ledger->cancelled;
  if (g_ledger->longest > all.longest.bits()) all.longest = long_call::of(g_ledger->longest);
  all.broken += static_cast<int>(g_ledger->problems);
  all.overtaken += g_ledger->overtaken;

  const leftovers left = check_survivor(q);
  if (!left.broken.empty()) {
    std::printf("broken: %s\n", left.broken.c_str());
    ++all.broken;
  }
  for (const std::uint32_t id : left.numbers) g_ledger->messages[id].taken.fetch_add(1);
  // One message may be lost with each killed consumer. At the end of the round, all consumers that still lived were
  // killed.
  const unsigned long may_lose = consumers_killed + consumers;
  unsigned long gone = 0, again = 0;
  const std::uint32_t ids = std::min(g_ledger->next_id.load(), kMaxIds);
  for (std::uint32_t id = 0; id < ids; ++id) {
    ledger::message& one = g_ledger->messages[id];
    all.sent += one.sending == kSent ? 1u : 0u;
    all.received += one.taken;
    if (one.sending == kSent && one.taken == 0) ++gone;
    if (one.taken > 1) again += one.taken - 1u;
    if (one.released > 1 || (policy == on_death::drop && one.taken > 1)) {
      std::printf("broken: message %u was received %u times\n", id, one.taken.load());
      ++all.broken;
    }
    one.sending = one.taken = one.released = 0;
  }
  // A message is missing here if a consumer received it and died before recording it. With redeliver, another consumer
  // gets that message, so no message may be missing.
  if (policy == on_death::redeliver ? gone != 0 : gone > may_lose) {
    std::printf("broken: %lu messages were lost, %lu consumers were killed\n", gone, may_lose);
    ++all.broken;
  }
  if (again > may_lose) {
    std::printf("broken: %lu messages were received again, %lu consumers were killed\n", again, may_lose);
    ++all.broken;
  }
  all.gone += gone;
  all.again += again;
}

int main_of(int count, char** arguments) {
  unsigned long kills = 200;
  unsigned seed = std::random_device{}();
  for (int i = 1; i + 1 < count; i += 2) {
    const unsigned long value = std::strtoul(arguments[i + 1], nullptr, 10);
    if (std::string_view(arguments[i]) == "--kills") kills = value;
    if (std::string_view(arguments[i]) == "--seed") seed = static_cast<unsigned>(value);
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  void* const memory =
      mmap(nullptr, sizeof(ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return 2;
  g_ledger = static_cast<ledger*>(memory);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  struct sigaction told {};
  told.sa_handler = [](int) { g_becomes_another = 1; };
  told.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &told, nullptr);
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  totals all;
  for (int round = 0; all.kills < kills && all.broken == 0; ++round) {
    const on_death policy = round % 2 == 0 ? on_death::drop : on_death::redeliver;
    const auto side = [&] { return static_cast<std::uint32_t>(1 + random() % kMaxSide); };
    const std::uint32_t producers = side(), consumers = side();
    round_of(policy, producers, consumers, std::min(100ul, kills - all.kills), random, all);
  }
  std::printf(
      "%lu kills, %lu sent, %lu received, %lu lost with consumers, %lu received again, longest recovery %.1f ms, %d "
      "broken\n"
      "longest call: %s, %.1f ms, others received %u meanwhile; %lu calls took over a second while others were "
      "served\n"
      "also: %lu stops, %lu calls of exec, %lu children that never used the queue, %lu threads cancelled\n",
      all.kills, all.sent, all.received, all.gone, all.again, static_cast<double>(all.longest_recovery_us) / 1e3,
      all.broken, all.longest.sends ? "acquire() and send()" : "receive()", all.longest.us / 1e3, all.longest.others,
      all.overtaken, all.stops, all.execs, all.idle, all.cancelled);
  return all.broken == 0 ? 0 : 1;
}

}  // namespace
}  // namespace forksight::ipc::test

int main(int count, char** arguments) { return forksight::ipc::test::main_of(count, arguments); }
