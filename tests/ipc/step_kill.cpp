// Kills a process in each operation, between two instructions. A survivor then checks that no message is lost or
// delivered twice unless the policy permits it, and that no slot or buffer stays unusable.
//
//   step_kill [--seed N]    kills after each instruction that changes the segment, and after some random instructions;
//                           kills recovering processes after every twentieth change; --seed repeats a run
//   step_kill --every       kills after every instruction; one process for each processor does a part of the work
//     --operations          only operations
//     --recoveries          only recovering processes
//   --first                 stops at the first broken invariant
//
// Exit status: 0: all is well; 1: an invariant is broken; 2: wrong arguments, or the set-up failed.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "step_scenarios.hpp"
#include "stepping.hpp"

namespace forksight::ipc::test {
namespace {

constexpr unsigned long kRecoveryStride = 20;  // changes between two kills of a recovering process

struct tally {
  unsigned long kills = 0, steps = 0;
  int broken = 0;
};

void need_here(bool good) {
  if (!good) std::exit(2);
}

queue make(const geometry_of_test& shape, on_death policy, const scenario& what) {
  options wanted;
  wanted.slots = shape.slots;
  wanted.buffers = shape.buffers;
  wanted.buffer_bytes = 64;
  wanted.after_death = policy;
  wanted.when_full = what.when_full;
  wanted.max_redeliver = what.max_redeliver;
  wanted.spin_us = 0;
  wanted.max_participants = 4;
  auto made = queue::create(wanted);
  if (!made) {
    std::printf("create: %s\n", made.error().text.c_str());
    std::exit(2);
  }
  queue q = std::move(made).value();
  for (std::uint32_t i = 0; i < shape.laps; ++i) {
    need_here(send_number(q, 0) && q.receive(deadline::now()));
  }
  for (std::uint32_t i = 1; i <= what.queued; ++i) need_here(send_number(q, i));
  if (what.before != scenario::first::queued) {
    auto first = q.receive(deadline::now());
    need_here(first && first->park());
    if (what.before == scenario::first::returned) need_here(q.requeue().has_value());
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

// Checks how often the end of the victim was counted: at most once in each role, and exactly once in a role that the
// victim had before the operation.
std::string check_ends(queue& survivor, const scenario& what) {
  const snapshot now = survivor.inspect();
  const auto is_wrong = [](const snapshot::role_counts& counts, bool was_there) {
    const std::uint32_t ended = counts.closed + counts.died;
    return ended > 1 || (was_there && ended == 0);
  };
  if (is_wrong(now.producers, was_producer(what))) return "the end of the producer was not counted exactly once";
  if (is_wrong(now.consumers, was_consumer(what))) return "the end of the consumer was not counted exactly once";
  return {};
}

// Checks the survivor's queue. Prints and counts an invariant that is broken.
void judge(queue& survivor, const scenario& what, const std::vector<numbers>& allowed, const std::string& where,
           tally& so_far) {
  const leftovers left = check_survivor(survivor);
  std::string broken = check_ends(survivor, what);
  if (broken.empty()) broken = left.broken;
  if (broken.empty() && !is_among(allowed, left.numbers))
    broken = "the wrong messages are left: " + in_words(left.numbers);
  if (broken.empty()) return;
  std::printf("broken: %s: %s\n", where.c_str(), broken.c_str());
  ++so_far.broken;
}

const std::vector<numbers>& allowed_by(const scenario& what, on_death policy, bool is_complete) {
  if (policy == on_death::drop) return is_complete ? what.after_drop : what.left_by_drop;
  return is_complete ? what.after_redeliver : what.left_by_redeliver;
}

std::string in_words(const killing_point& at) {
  return std::to_string(at.count) + (at.by == killing_point::unit::after_change ? " changes" : " instructions");
}

std::string where_it_died(const scenario& what, const geometry_of_test& shape, on_death policy,
                          const killing_point& at) {
  return std::string(what.name) + ", " + std::to_string(shape.slots) + " slots, " +
         (policy == on_death::drop ? "drop" : "redeliver") + ", killed after " + in_words(at);
}

// Kills one victim at `at`, and judges the queue that the victim leaves. Returns false if the operation was complete
// before that point, or failed.
bool kill_once(const scenario& what, const geometry_of_test& shape, on_death policy, const killing_point& at,
               tally& so_far) {
  queue q = make(shape, policy, what);
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
  judge(q, what, allowed_by(what, policy, is_complete), where, so_far);
  return !is_complete;
}

// Waits until the victim looks dead. Returns false if the victim does not look dead before the time limit of
// wait_for_deaths() has passed.
bool looks_dead(const queue& q, const std::string& where, tally& so_far) {
  const std::string alive = wait_for_deaths(q, 1);
  if (alive.empty()) return true;
  std::printf("broken: %s: %s\n", where.c_str(), alive.c_str());
  ++so_far.broken;
  return false;
}

// Kills a victim in the operation of `what`, and a second process while it recovers the victim. The second process
// begins only when the victim looks dead, because otherwise it would recover nobody. Returns false if the recovery was
// complete before the second kill, or if an operation failed.
bool kill_recoverer(const scenario& what, const geometry_of_test& shape, on_death policy, const killing_point& first,
                    const killing_point& second, bool& first_is_complete, tally& so_far) {
  queue q = make(shape, policy, what);
  const words memory(q);
  hands of_second;
  stepped recoverer([&] { join(of_second, q); }, [&] { of_second.handle.recover(); });
  hands of_first;
  stepped victim([&] { what.prepare(of_first, q); }, [&] { what.operate(of_first, q); });
  const auto how = victim.is_ready() ? victim.kill_at(first, memory) : stepped::outcome::failed;
  const std::string where = where_it_died(what, shape, policy, first) + ", its recoverer after " + in_words(second);
  first_is_complete = how == stepped::outcome::completed;
  if (how != stepped::outcome::failed && !looks_dead(q, where, so_far)) return false;
  const auto then = recoverer.is_ready() ? recoverer.kill_at(second, memory) : stepped::outcome::failed;
  so_far.kills += 2;
  so_far.steps += victim.steps() + recoverer.steps();
  if (how == stepped::outcome::failed || then == stepped::outcome::failed) {
    std::printf("broken: %s: the operation itself failed\n", where.c_str());
    ++so_far.broken;
    return false;
  }
  if (then == stepped::outcome::completed && q.inspect().participants.size() != 2) {
    std::printf("broken: %s: the recovery was complete, but has not freed the entry of the dead process\n",
                where.c_str());
    ++so_far.broken;
  }
  judge(q, what, allowed_by(what, policy, first_is_complete), where, so_far);
  return then == stepped::outcome::killed;
}

struct plan_of_run {
  bool every = false, operations = true, recoveries = true, stops_at_first = false;
  unsigned seed = 0;
  unsigned long jobs = 1, job = 0;  // this process is number `job` of `jobs` processes

  bool is_mine(unsigned long n) const { return n % jobs == job; }
  bool is_over(const tally& so_far) const { return stops_at_first && so_far.broken != 0; }
};

template <class Body>
void for_each_kind(const plan_of_run& plan, const tally& so_far, Body body) {
  for (const scenario& what : kScenarios) {
    for (const geometry_of_test& shape : kShapes) {
      // With two buffers, two queued messages leave no buffer for a third one. So acquire() drops the oldest message.
      if (what.when_full == full::drop_oldest && shape.buffers != 2) continue;
      for (const on_death policy : {on_death::drop, on_death::redeliver}) {
        if (plan.is_over(so_far)) return;
        body(what, shape, policy);
      }
    }
  }
}

void report(const char* of, const scenario& what, const geometry_of_test& shape, on_death policy, unsigned long kills,
            const std::string& among) {
  std::printf("%s%s, %u slots, %s: %lu kills%s\n", of, what.name, shape.slots,
              policy == on_death::drop ? "drop" : "redeliver", kills, among.c_str());
}

// Kills a victim in each operation: after each change of the segment, and after four random instructions. Then, for
// each death of a victim, kills a recovering process after every twentieth change, starting with a random change.
void run(const plan_of_run& plan, tally& so_far) {
  std::mt19937 random(plan.seed);
  const auto is_over = [&] { return plan.is_over(so_far); };
  for_each_kind(plan, so_far, [&](const scenario& what, const geometry_of_test& shape, on_death policy) {
    // The operations for which is_long() is true change no slot and no buffer. So one shape is enough for them.
    if (&shape != &kShapes[0] && is_long(what)) return;
    const unsigned long kills = so_far.kills;
    unsigned long length = 0;  // the number of instructions of the operation
    for (unsigned long n = 0; !is_over(); ++n) {
      const unsigned long steps = so_far.steps;
      const bool goes_on = kill_once(what, shape, policy, {killing_point::unit::after_change, n}, so_far);
      length = so_far.steps - steps;
      if (!goes_on) break;
    }
    for (unsigned long n = 0; n < 4 && !is_over(); ++n) {
      const unsigned long at = random() % length;
      kill_once(what, shape, policy, {killing_point::unit::after_step, at, 0, 0, at}, so_far);
    }
    report("", what, shape, policy, so_far.kills - kills, " in " + std::to_string(length) + " instructions");
  });
  for_each_kind(plan, so_far, [&](const scenario& what, const geometry_of_test& shape, on_death policy) {
    if (!is_recovered_by_victims(what)) return;
    const unsigned long kills = so_far.kills;
    bool first_is_complete = false;
    for (unsigned long n = 0; !first_is_complete && !is_over(); ++n) {
      for (unsigned long m = random() % kRecoveryStride; !is_over(); m += kRecoveryStride) {
        const bool goes_on = kill_recoverer(what, shape, policy, {killing_point::unit::after_change, n},
                                            {killing_point::unit::after_change, m}, first_is_complete, so_far);
        if (!goes_on) break;
      }
    }
    report("recovery of a process that died in ", what, shape, policy, so_far.kills - kills, "");
  });
}

struct recorded {
  walk came_by;
  std::vector<unsigned long> changes;  // the numbers, from 1, of the instructions that changed the segment
};

// Steps through the whole operation and records it. If `first` is given, kills a victim at that point, and records the
// recovery of that victim instead.
recorded walk_through(const scenario& what, const geometry_of_test& shape, on_death policy, const killing_point* first,
                      tally& so_far) {
  queue q = make(shape, policy, what);
  const words memory(q);
  hands of_first, of_second;
  recorded way;
  std::unique_ptr<stepped> recoverer;
  if (first != nullptr) {
    recoverer = std::make_unique<stepped>([&] { join(of_second, q); }, [&] { of_second.handle.recover(); });
  }
  stepped victim([&] { what.prepare(of_first, q); }, [&] { what.operate(of_first, q); });
  bool good = victim.is_ready();
  if (first != nullptr) {
    good = good && victim.kill_at(*first, memory) != stepped::outcome::failed && looks_dead(q, what.name, so_far);
  }
  stepped& subject = first != nullptr ? *recoverer : victim;
  good = good && subject.is_ready() && subject.record(way.came_by, memory, way.changes) == stepped::outcome::completed;
  so_far.steps += subject.steps();
  if (good) return way;
  std::printf("broken: %s: could not be stepped through\n", what.name);
  ++so_far.broken;
  return {};
}

// Kills after each instruction of each operation.
void run_every_operation(const plan_of_run& plan, tally& so_far) {
  for_each_kind(plan, so_far, [&](const scenario& what, const geometry_of_test& shape, on_death policy) {
    if (&shape != &kShapes[0] && is_long(what)) return;
    const unsigned long kills = so_far.kills;
    const walk came_by = walk_through(what, shape, policy, nullptr, so_far).came_by;
    for (unsigned long n = 0; n <= came_by.length() && !plan.is_over(so_far); ++n) {
      if (plan.is_mine(n)) kill_once(what, shape, policy, came_by.after(n), so_far);
    }
    report("", what, shape, policy, so_far.kills - kills, " of " + std::to_string(came_by.length() + 1) + " instants");
  });
}

// Kills a recovering process after each of its instructions. This is repeated for each point at which the first victim
// can die: before its operation, after each change that its operation makes, and after its operation.
void run_every_recovery(const plan_of_run& plan, tally& so_far) {
  for_each_kind(plan, so_far, [&](const scenario& what, const geometry_of_test& shape, on_death policy) {
    if (!is_recovered_by_victims(what)) return;
    const unsigned long kills = so_far.kills;
    unsigned long instants = 0;
    const recorded way = walk_through(what, shape, policy, nullptr, so_far);
    std::vector<unsigned long> deaths = way.changes;
    deaths.insert(deaths.begin(), 0);
    deaths.push_back(way.came_by.length() + 1);
    for (const unsigned long death : deaths) {
      const killing_point first = way.came_by.after(death);
      const walk came_by = walk_through(what, shape, policy, &first, so_far).came_by;
      instants += came_by.length() + 1;
      for (unsigned long m = 0; m <= came_by.length() && !plan.is_over(so_far); ++m) {
        bool first_is_complete = false;
        if (plan.is_mine(m)) kill_recoverer(what, shape, policy, first, came_by.after(m), first_is_complete, so_far);
      }
    }
    report("recovery of a process that died in ", what, shape, policy, so_far.kills - kills,
           " of " + std::to_string(2 * instants));
  });
}

// Divides the work among child processes, one for each processor, and adds up their results.
void run_every_by_all(plan_of_run plan, tally& all) {
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  plan.jobs = processors > 1 ? static_cast<unsigned long>(processors) : 1;
  void* const memory =
      mmap(nullptr, plan.jobs * sizeof(tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::exit(2);
  auto* const parts = static_cast<tally*>(memory);
  std::vector<std::unique_ptr<child>> workers;
  for (plan.job = 0; plan.job < plan.jobs; ++plan.job) {
    workers.push_back(std::make_unique<child>([&plan, parts] {
      if (plan.operations) run_every_operation(plan, parts[plan.job]);
      if (plan.recoveries) run_every_recovery(plan, parts[plan.job]);
      return 0;
    }));
  }
  for (unsigned long job = 0; job < plan.jobs; ++job) {
    const int status = workers[job]->wait();
    if (status != 0) std::printf("broken: a worker process ended with status %d\n", status);
    all.kills += parts[job].kills;
    all.steps += parts[job].steps;
    all.broken += parts[job].broken + (status != 0 ? 1 : 0);
  }
}

int main_of(int count, char** arguments) {
  plan_of_run plan;
  plan.seed = std::random_device{}();
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--every") {
      plan.every = true;
    } else if (argument == "--operations") {
      plan.recoveries = false;
    } else if (argument == "--recoveries") {
      plan.operations = false;
    } else if (argument == "--first") {
      plan.stops_at_first = true;
    } else if (argument == "--seed" && i + 1 < count) {
      plan.seed = static_cast<unsigned>(std::strtoul(arguments[++i], nullptr, 10));
    } else {
      std::fprintf(stderr, "usage: step_kill [--every [--operations | --recoveries]] [--first] [--seed N]\n");
      return 2;
    }
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::printf("seed %u\n", plan.seed);
  tally all;
  plan.every ? run_every_by_all(plan, all) : run(plan, all);
  std::printf("%lu kills, %lu instructions stepped, %d broken\n", all.kills, all.steps, all.broken);
  return all.broken == 0 ? 0 : 1;
}

}  // namespace
}  // namespace forksight::ipc::test

int main(int count, char** arguments) { return forksight::ipc::test::main_of(count, arguments); }
