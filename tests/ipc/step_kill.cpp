// A process dies at each instruction of each operation, and a survivor finds nothing lost, doubled or stuck beyond the
// policy. `step_kill` kills after each instruction that changes the segment, and at some others; `step_kill --every`
// after each of 2,000 instructions or all that there are; `step_kill --seed N` repeats a run. Exit status 1: an
// invariant is broken.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "stepping.hpp"

namespace forksight::ipc::test {
namespace {

using numbers = std::vector<std::uint32_t>;
using namespace std::literals;

// What the victim has. It dies with it: nothing here is ever destroyed.
struct hands {
  queue handle;
  std::vector<loan> loans;
  std::vector<message> messages;
};

struct scenario {
  const char* name;
  std::uint32_t queued;  // messages 1, 2, ... are queued before
  full when_full;
  void (*prepare)(hands&, const queue& inherited);
  void (*operate)(hands&, const queue& inherited);
  // What may be left, the victim having died on the way; and what, having died after it.
  std::vector<numbers> left_by_drop, left_by_redeliver, after_drop, after_redeliver;
};

template <class T>
T need(result<T> got) {
  if (!got) _exit(9);
  return std::move(got).value();
}
void need(const result<void>& got) {
  if (!got) _exit(9);
}

void join(hands& of, const queue& inherited) { of.handle = need(inherited.reattach_after_fork()); }
void send_nine(hands& of, const queue&) {
  const std::uint32_t nine = 9;
  need(of.handle.send_copy(&nine, sizeof nine));
}
void receive_one(hands& of, const queue&) { of.messages.push_back(need(of.handle.receive())); }

const std::vector<scenario> kScenarios = {
    {"send", 1, full::block, join, send_nine, {{1}, {1, 9}}, {{1}, {1, 9}}, {{1, 9}}, {{1, 9}}},
    {"send to an empty queue", 0, full::block, join, send_nine, {{}, {9}}, {{}, {9}}, {{9}}, {{9}}},
    {"send, dropping the oldest",
     2,
     full::drop_oldest,
     join,
     send_nine,
     {{1, 2}, {2}, {2, 9}},
     {{1, 2}, {2}, {2, 9}},
     {{2, 9}},
     {{2, 9}}},
    {"receive", 2, full::block, join, receive_one, {{1, 2}, {2}}, {{1, 2}}, {{2}}, {{1, 2}}},
    {"release",
     2,
     full::block,
     [](hands& of, const queue& q) {
       join(of, q);
       receive_one(of, q);
     },
     [](hands& of, const queue&) { need(of.messages.back().release()); },
     {{2}},
     {{1, 2}, {2}},
     {{2}},
     {{2}}},
    {"give a loan back",
     1,
     full::block,
     [](hands& of, const queue& q) {
       join(of, q);
       of.loans.push_back(need(of.handle.acquire()));
     },
     [](hands& of, const queue&) { of.loans.clear(); },
     {{1}},
     {{1}},
     {{1}},
     {{1}}},
    {"receive in vain",
     0,
     full::block,
     join,
     [](hands& of, const queue&) {
       if (of.handle.receive(deadline::after(1ms))) _exit(9);
     },
     {{}},
     {{}},
     {{}},
     {{}}},
    {"attach", 2, full::block, [](hands&, const queue&) {}, join, {{1, 2}}, {{1, 2}}, {{1, 2}}, {{1, 2}}},
    {"close",
     2,
     full::block,
     [](hands& of, const queue& q) {
       join(of, q);
       receive_one(of, q);
       need(of.messages.back().release());
     },
     [](hands& of, const queue&) { of.handle = {}; },
     {{2}},
     {{2}},
     {{2}},
     {{2}}},
    {"stop producing",
     1,
     full::block,
     [](hands& of, const queue& q) {
       join(of, q);
       send_nine(of, q);
     },
     [](hands& of, const queue&) { of.handle.close_producer(); },
     {{1, 9}},
     {{1, 9}},
     {{1, 9}},
     {{1, 9}}},
};

struct geometry_of_test {
  std::uint32_t slots, buffers, laps;
};
constexpr geometry_of_test kShapes[] = {{2, 3, 0}, {4, 2, 5}};

struct tally {
  unsigned long kills = 0, steps = 0;
  int broken = 0;
};

queue make(const geometry_of_test& shape, on_death policy, full when_full, std::uint32_t queued) {
  options wanted;
  wanted.slots = shape.slots;
  wanted.buffers = shape.buffers;
  wanted.buffer_bytes = 64;
  wanted.od = policy;
  wanted.fl = when_full;
  wanted.spin_us = 0;
  wanted.max_participants = 4;
  auto made = queue::create(wanted);
  if (!made) {
    std::printf("create: %s\n", made.error().text.c_str());
    std::exit(2);
  }
  queue q = std::move(made).value();
  for (std::uint32_t i = 0; i < shape.laps; ++i) {
    if (!send_number(q, 0) || !q.receive(deadline::now())) std::exit(2);
  }
  for (std::uint32_t i = 1; i <= queued; ++i) {
    if (!send_number(q, i)) std::exit(2);
  }
  return q;
}

bool is_among(const std::vector<numbers>& allowed, const numbers& what) {
  for (const numbers& one : allowed) {
    if (one == what) return true;
  }
  return false;
}

std::string in_words(const numbers& what) {
  std::string text = "{";
  for (const std::uint32_t number : what) text += " " + std::to_string(number);
  return text + " }";
}

// Reports what does not hold.
void judge(queue& survivor, const std::vector<numbers>& allowed, const std::string& where, tally& so_far) {
  const leftovers left = check_survivor(survivor);
  std::string broken = left.broken;
  if (broken.empty() && !is_among(allowed, left.numbers)) broken = "left are the messages " + in_words(left.numbers);
  if (broken.empty()) return;
  std::printf("broken: %s: %s\n", where.c_str(), broken.c_str());
  ++so_far.broken;
}

const std::vector<numbers>& allowed_by(const scenario& what, on_death policy, bool is_complete) {
  if (policy == on_death::drop) return is_complete ? what.after_drop : what.left_by_drop;
  return is_complete ? what.after_redeliver : what.left_by_redeliver;
}

std::string where_it_died(const scenario& what, const geometry_of_test& shape, on_death policy,
                          const killing_point& at) {
  return std::string(what.name) + ", " + std::to_string(shape.slots) + " slots, " +
         (policy == on_death::drop ? "drop" : "redeliver") + ", killed after " + std::to_string(at.count) +
         (at.by == killing_point::unit::after_change ? " changes" : " instructions");
}

// False: the operation was complete before.
bool kill_once(const scenario& what, const geometry_of_test& shape, on_death policy, const killing_point& at,
               tally& so_far) {
  queue q = make(shape, policy, what.when_full, what.queued);
  const words memory(q);
  hands of;
  stepped victim([&] { what.prepare(of, q); }, [&] { what.operate(of, q); });
  const auto how = victim.is_ready() ? victim.kill_at(at, memory) : stepped::outcome::failed;
  const std::string where = where_it_died(what, shape, policy, at);
  ++so_far.kills;
  so_far.steps += victim.steps();
  if (how == stepped::outcome::failed) {
    std::printf("broken: %s: the operation itself failed\n", where.c_str());
    ++so_far.broken;
    return false;
  }
  const bool is_complete = how == stepped::outcome::completed;
  judge(q, allowed_by(what, policy, is_complete), where, so_far);
  return !is_complete;
}

// The second victim dies while it recovers the first, which died in `what`.
bool kill_recoverer(const scenario& what, const geometry_of_test& shape, on_death policy, const killing_point& first,
                    const killing_point& second, bool& first_is_complete, tally& so_far) {
  queue q = make(shape, policy, what.when_full, what.queued);
  const words memory(q);
  hands of_second;
  stepped recoverer([&] { join(of_second, q); }, [&] { of_second.handle.recover(); });
  hands of_first;
  stepped victim([&] { what.prepare(of_first, q); }, [&] { what.operate(of_first, q); });
  const auto how = victim.is_ready() ? victim.kill_at(first, memory) : stepped::outcome::failed;
  const auto then = recoverer.is_ready() ? recoverer.kill_at(second, memory) : stepped::outcome::failed;
  const std::string where =
      where_it_died(what, shape, policy, first) + ", its recoverer after " + std::to_string(second.count) + " changes";
  so_far.kills += 2;
  so_far.steps += victim.steps() + recoverer.steps();
  if (how == stepped::outcome::failed || then == stepped::outcome::failed) {
    std::printf("broken: %s: the operation itself failed\n", where.c_str());
    ++so_far.broken;
    return false;
  }
  first_is_complete = how == stepped::outcome::completed;
  judge(q, allowed_by(what, policy, first_is_complete), where, so_far);
  return then == stepped::outcome::killed;
}

struct plan_of_run {
  bool every = false, recoverers = true, stops_at_first = false;
  unsigned seed = 0;
};

void run(const plan_of_run& plan, tally& so_far) {
  std::mt19937 random(plan.seed);
  const auto is_over = [&] { return plan.stops_at_first && so_far.broken != 0; };
  const auto each = [&](auto&& body) {
    for (const scenario& what : kScenarios) {
      for (const geometry_of_test& shape : kShapes) {
        // Both messages are in the way of the third only where there is room for two.
        if (what.when_full == full::drop_oldest && shape.buffers != 2) continue;
        for (const on_death policy : {on_death::drop, on_death::redeliver}) {
          if (is_over()) return;
          body(what, shape, policy);
        }
      }
    }
  };
  each([&](const scenario& what, const geometry_of_test& shape, on_death policy) {
    // Long, and the same with any number of slots.
    if (!plan.every && &shape != &kShapes[0] && (what.name == "attach"sv || what.name == "receive in vain"sv)) return;
    const unsigned long kills = so_far.kills;
    unsigned long length = 0;  // of the operation, in instructions
    for (unsigned long n = 0; !is_over(); ++n) {
      const unsigned long steps = so_far.steps;
      const bool goes_on = kill_once(what, shape, policy, {killing_point::unit::after_change, n}, so_far);
      length = so_far.steps - steps;
      if (!goes_on) break;
    }
    // Of the long ones, most of which is the search through /proc and the text of an error, as many at random.
    const unsigned long wanted = plan.every ? std::min(length, 2000ul) : 4;
    for (unsigned long n = 0; n < wanted && !is_over(); ++n) {
      const unsigned long at = wanted == length ? n : random() % length;
      kill_once(what, shape, policy, {killing_point::unit::after_step, at}, so_far);
    }
    std::printf("%s, %u slots, %s: %lu kills in %lu instructions\n", what.name, shape.slots,
                policy == on_death::drop ? "drop" : "redeliver", so_far.kills - kills, length);
  });
  if (!plan.recoverers) return;
  each([&](const scenario& what, const geometry_of_test& shape, on_death policy) {
    if (what.name != "send"sv && what.name != "receive"sv && what.name != "release"sv) return;
    const unsigned long kills = so_far.kills;
    bool first_is_complete = false;
    for (unsigned long n = 0; !first_is_complete && !is_over(); ++n) {
      const unsigned long stride = plan.every ? 1 : 7;
      for (unsigned long m = random() % stride; !is_over(); m += stride) {
        const bool goes_on = kill_recoverer(what, shape, policy, {killing_point::unit::after_change, n},
                                            {killing_point::unit::after_change, m}, first_is_complete, so_far);
        if (!goes_on) break;
      }
    }
    std::printf("recovery of one that died in %s, %u slots, %s: %lu kills\n", what.name, shape.slots,
                policy == on_death::drop ? "drop" : "redeliver", so_far.kills - kills);
  });
}

int main_of(int count, char** arguments) {
  plan_of_run plan;
  plan.seed = std::random_device{}();
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--every") {
      plan.every = true;
    } else if (argument == "--first") {
      plan.stops_at_first = true;
    } else if (argument == "--seed" && i + 1 < count) {
      plan.seed = static_cast<unsigned>(std::strtoul(arguments[++i], nullptr, 10));
    } else {
      std::fprintf(stderr, "usage: step_kill [--every] [--first] [--seed N]\n");
      return 2;
    }
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::printf("seed %u\n", plan.seed);
  tally all;
  run(plan, all);
  std::printf("%lu kills, %lu instructions stepped, %d broken\n", all.kills, all.steps, all.broken);
  return all.broken == 0 ? 0 : 1;
}

}  // namespace
}  // namespace forksight::ipc::test

int main(int count, char** arguments) { return forksight::ipc::test::main_of(count, arguments); }
