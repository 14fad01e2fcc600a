// Producers and consumers use a ring with two slots and two buffers. One of them may be killed, and other processes
// recover the killed one. model_check tries every order of the steps of all these processes. The sources of the state
// machine are compiled with FORKSIGHT_IPC_MODEL. These sources call model_step() (model_fiber.cpp) before each access
// to shared memory on which a decision depends.
//
//   model_check                  up to three users and a kill; three users and two recovering processes, where a
//                                consumer is killed; messages that are returned or parked before the first step;
//                                consumers that park, release parked messages, or requeue them
//   model_check --large          two producers and two consumers, without a message before the first step, with a
//                                message that is queued before it, or with two recovering processes; three users and
//                                two recovering processes, with a message that is queued before the first step
//   model_check --agree          explores the smaller plans without reductions, with each reduction alone and with all:
//                                every exploration must reach the same ends
//   model_check --agree --large  explores the larger plans of model_check, and two producers and two consumers, without
//                                reductions and with all: both explorations must reach the same ends
//   --second                     explores only every second of the chosen plans
//   --first                      stops after the first plan that is broken
//   --plan N                     explores only the Nth plan of the chosen ones, counted from 1
//
// Exit status: 0: all is well; 1: something is broken; 2: wrong arguments; 3: the state machine uses a word that is not
// modelled.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "model_explorer.hpp"

namespace forksight::ipc::test {
namespace {

using namespace detail;

void begin(const plan_of_run& plan) {
  g_world.plan = plan;
  std::memset(static_cast<void*>(&g_world.memory), 0, sizeof g_world.memory);
  g_world.view = g_world.memory.begin(plan.redelivers);
  if (plan.parks_at_once) g_world.view.max_redeliver = 0;
  // It does not matter which owner makes these steps, because the message has no owner after them.
  const owner_id first(0, 0);
  if (plan.first == first_message::none) return;
  const ring& of = g_world.view;
  constexpr std::uint32_t kNoUser = 77;
  const auto need = [](step_result outcome) {
    if (outcome != step_result::done) std::abort();
  };
  claimed before;
  need(test::claim(of, first, before));
  need(of.publish(first, kNoUser, before, kProducers + 1, 0));
  if (plan.first == first_message::queued) return;
  taken message;
  need(test::take(of, first, message));
  need(of.park(first, kNoUser, message, 0));
  if (plan.first == first_message::parked) return;
  need(of.withdraw(first, 0, message));
  need(of.requeue(first, message, 0));
}

const char* in_words(act what) {
  switch (what) {
    case act::consume: return "consumes";
    case act::park: return "parks";
    case act::clear: return "releases parked messages";
    case act::requeue: return "requeues";
  }
  return "";
}

const char* in_words(first_message what) {
  switch (what) {
    case first_message::none: return "none";
    case first_message::queued: return "one queued";
    case first_message::returned: return "one returned";
    case first_message::parked: return "one parked";
  }
  return "";
}

std::string in_words(const plan_of_run& plan) {
  std::string text = std::to_string(plan.producers) + " producers, " + std::to_string(plan.consumers) + " consumers, " +
                     in_words(plan.first) + ", victim " + std::to_string(plan.victim) + ", " +
                     std::to_string(plan.recoverers) + " recoverers, " + (plan.redelivers ? "redeliver" : "drop");
  for (std::uint32_t i = 0; i < plan.consumers; ++i) {
    if (plan.acts[i] == act::consume) continue;
    text += ", consumer " + std::to_string(i) + " " + in_words(plan.acts[i]);
  }
  if (plan.parks_at_once) text += ", parked at once";
  return text + (plan.asks_for_end ? ", a consumer that finds nothing asks whether the queue has ended" : "");
}

exploration report(const plan_of_run& plan, const reductions& by, const char* how) {
  begin(plan);
  const auto start = std::chrono::steady_clock::now();
  exploration found = explore(by, isatty(STDERR_FILENO) != 0);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("%s%s: %zu states, %llu steps, %zu ends, %.1f s, %zu MiB\n", in_words(plan).c_str(), how, found.states,
              static_cast<unsigned long long>(found.steps), found.ends, took.count(), found.bytes >> 20);
  if (!found.broken.empty()) std::printf("broken: %s\n", found.broken.c_str());
  return found;
}

bool check(const plan_of_run& plan, std::uint64_t& states) {
  const exploration found = report(plan, {}, "");
  states += found.states;
  return found.broken.empty();
}

// Explores the plan without reductions and with all reductions, and compares the ends. `thoroughly`: also explores the
// plan with each reduction alone. In addition, the exploration without reductions runs the code of each step again, and
// compares the result with the table.
bool agree(const plan_of_run& plan, bool thoroughly, std::uint64_t& states) {
  const exploration full = report(plan, {false, false, false, false, thoroughly}, ", unreduced");
  states += full.states;
  struct kind {
    reductions by;
    const char* name;
  };
  std::vector<kind> kinds = {{{}, ", all reductions"}};
  if (thoroughly) {
    kinds.insert(kinds.end(), {{{true, false, false, false}, ", the dead merged"},
                               {{false, true, false, false}, ", equals merged"},
                               {{false, false, true, false}, ", local steps merged"},
                               {{false, false, false, true}, ", alike merged"}});
  }
  bool good = full.broken.empty();
  for (const kind& one : kinds) {
    const exploration reduced = report(plan, one.by, one.name);
    states += reduced.states;
    good = good && reduced.broken.empty();
    if (reduced.end_states == full.end_states) continue;
    std::printf("broken: the exploration with reductions reaches other ends than the one without\n");
    good = false;
  }
  return good;
}

struct size {
  std::uint32_t producers, consumers, recoverers;
  first_message first;
  std::array<act, kConsumers> acts{};
  bool parks_at_once = false, asks_for_end = false;
  bool spares_producers = false;  // no producer is killed
};

std::vector<plan_of_run> plans_of(const std::vector<size>& sizes) {
  std::vector<plan_of_run> plans;
  for (const size& one : sizes) {
    for (const bool redelivers : {false, true}) {
      for (const int victim : {-1, 0, static_cast<int>(kProducers)}) {
        if (victim == 0 && (one.producers == 0 || one.spares_producers)) continue;
        plans.push_back({redelivers, one.recoverers, victim, one.producers, one.consumers, one.first, one.acts,
                         one.parks_at_once, one.asks_for_end});
      }
    }
  }
  return plans;
}

int main_of(int count, char** arguments) {
  bool large = false, agrees = false, every_second = false, stops_at_first = false;
  unsigned long only = 0;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--large") {
      large = true;
    } else if (argument == "--agree") {
      agrees = true;
    } else if (argument == "--second") {
      every_second = true;
    } else if (argument == "--first") {
      stops_at_first = true;
    } else if (argument == "--plan" && i + 1 < count) {
      only = std::strtoul(arguments[++i], nullptr, 10);
    } else {
      std::fprintf(stderr, "usage: model_check [--large] [--agree] [--second] [--first] [--plan N]\n");
      return 2;
    }
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  constexpr first_message none = first_message::none, queued = first_message::queued,
                          returned = first_message::returned, parked = first_message::parked;
  std::vector<size> sizes = {{1, 1, 2, none},
                             {1, 1, 1, queued},
                             {1, 2, 1, none},
                             {1, 2, 1, queued},
                             {0, 2, 1, queued, {}, true, true},
                             {0, 2, 1, queued, {act::park, act::clear}},
                             {0, 2, 1, returned, {}, false, true},
                             {0, 2, 1, parked, {act::requeue, act::consume}},
                             {0, 2, 1, parked, {act::consume, act::requeue}},
                             {0, 2, 1, parked, {act::clear, act::requeue}},
                             {0, 2, 1, parked, {act::clear, act::consume}}};
  const std::vector<size> larger = {{2, 1, 1, none},
                                    {1, 2, 2, queued, {}, false, false, true},
                                    {0, 2, 2, returned, {}, true, true},
                                    {0, 2, 2, parked, {act::requeue, act::consume}},
                                    {1, 2, 1, returned},
                                    {1, 2, 1, queued, {}, true},
                                    {1, 2, 1, parked, {act::requeue, act::consume}}};
  if (large && !agrees) {
    sizes = {{2, 2, 1, none}, {1, 2, 2, queued}, {2, 2, 1, queued}, {2, 2, 2, none}};
  } else if (large) {
    sizes = larger;
    sizes.push_back({2, 2, 1, none});
  } else if (!agrees) {
    sizes.insert(sizes.end(), larger.begin(), larger.end());
  }
  std::uint64_t states = 0;
  int broken = 0;
  std::vector<plan_of_run> plans = plans_of(sizes);
  if (only != 0) plans = only <= plans.size() ? std::vector{plans[only - 1]} : std::vector<plan_of_run>{};
  if (plans.empty()) {
    std::fprintf(stderr, "model_check: there is no plan %lu\n", only);
    return 2;
  }
  for (std::size_t i = 0; i < plans.size(); i += every_second ? 2 : 1) {
    const plan_of_run& plan = plans[i];
    if (broken != 0 && stops_at_first) break;
    if (!(agrees ? agree(plan, !large, states) : check(plan, states))) ++broken;
  }
  std::printf("%llu states, %d broken\n", static_cast<unsigned long long>(states), broken);
  return broken == 0 ? 0 : 1;
}

}  // namespace
}  // namespace forksight::ipc::test

int main(int count, char** arguments) { return forksight::ipc::test::main_of(count, arguments); }
