// Every order of the steps of two producers and two consumers of which one is killed, and of the survivors that recover
// it meanwhile: on a ring of two slots, from its first step to the last. The state machine's sources are compiled with
// FORKSIGHT_IPC_MODEL: before each access to shared memory they call model_step(), which goes back to the explorer.
//
// Each actor is a fiber with a stack of its own. A state is the shared memory and what each actor has seen so far,
// which decides what it does next; a state that was met before is not gone on with. To try another order the memory and
// the stacks are put back as they were.
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model_world.hpp"
#include "recovery.hpp"

namespace forksight::ipc::test {
namespace {

using namespace detail;

struct plan_of_run {
  bool redelivers = false;
  std::uint32_t recoverers = 1;
  int victim = 0;
  std::uint32_t producers = kProducers, consumers = kConsumers;
  std::uint32_t queued = 0;  // messages that are there before anybody moves; number kProducers + 1
};

plan_of_run g_plan;

void produce(actor& self, std::uint32_t index) {
  const ring& of = g_world.view;
  const owner_id me(index, 0);
  claimed mine;
  const step_result got = test::claim(of, me, mine);
  self.saw_corrupt |= got == step_result::corrupt;
  if (got != step_result::done) return;
  // The number travels where the payload is not looked at: in the length.
  const step_result sent = of.publish(me, index, mine, index + 1, 0);
  self.has_sent = sent == step_result::done;
  self.saw_corrupt |= sent == step_result::corrupt || sent == step_result::evicted;
  if (sent == step_result::none) self.saw_corrupt |= of.give_back(me, mine, 0) != step_result::done;
}

void consume(actor& self, std::uint32_t index) {
  const ring& of = g_world.view;
  const owner_id me(index, 0);
  taken message;
  const step_result got = of.take(me, 0, message);
  self.saw_corrupt |= got == step_result::corrupt || got == step_result::evicted;
  if (got != step_result::done) return;
  self.has_taken = true;
  self.number = message.length;
  const step_result freed = of.release(me, message, 0);
  self.saw_corrupt |= freed != step_result::done;
  self.has_released = freed == step_result::done;
}

void recover_victim() {
  recovered what;
  const auto index = static_cast<std::uint32_t>(g_world.victim);
  (void)recovery::recover(g_world.view, index, memory_of_ring::identity_of(index), 0, what);
  // What nobody had acknowledged goes to another.
  if (g_plan.redelivers && what.lost != 0) g_running->saw_corrupt = true;
}

void run_actor() {
  actor& self = *g_running;
  const auto index = static_cast<std::uint32_t>(&self - g_world.actors);
  if (index >= kUsers) {
    recover_victim();
  } else if (index < kProducers) {
    if (index < g_plan.producers) produce(self, index);
  } else if (index - kProducers < g_plan.consumers) {
    consume(self, index);
  }
  self.is_over = true;
  swapcontext(&self.context, &g_world.explorer);
  std::abort();
}

// Lets it go on to its next step.
void go_on(std::uint32_t index) {
  actor& next = g_world.actors[index];
  g_running = &next;
  swapcontext(&g_world.explorer, &next.context);
  g_running = nullptr;
}

struct tally {
  state_set seen;
  std::uint64_t steps = 0, ends = 0;
  std::string broken;
  std::vector<std::uint32_t> path;
};

// Nobody runs any more: what is left, by a consumer that comes now.
std::string check_end() {
  const ring& of = g_world.view;
  int count_of[kProducers + 2] = {};
  for (std::uint32_t i = 0; i < g_world.actor_count; ++i) {
    const actor& one = g_world.actors[i];
    if (one.saw_corrupt) return "actor " + std::to_string(i) + " was refused, or lost what it must not";
    if (static_cast<int>(i) == g_world.victim) continue;
    if (one.has_taken && (one.number == 0 || one.number > kProducers + 1))
      return "a message that nobody sent was taken";
    if (one.has_taken) ++count_of[one.number];
  }
  const actor* const victim = g_world.victim < 0 ? nullptr : &g_world.actors[g_world.victim];
  if (victim != nullptr && g_world.memory.participants[g_world.victim].word.load() ==
                               memory_of_ring::identity_of(static_cast<std::uint32_t>(g_world.victim)).bits()) {
    return "the dead one's entry is not free";
  }
  for (std::uint32_t i = 0; i < of.buffer_count; ++i) {
    const buffer_word word = buffer_word::of(of.buffers[i].word.load());
    if (word.state != buffer_state::free && word.state != buffer_state::queued) return "a buffer is nobody's";
  }
  // Who is left may be any that lives; the last user is not the victim, or the one before is not.
  const std::uint32_t survivor = g_world.victim == 3 ? 2 : 3;
  const owner_id me(survivor, 0);
  taken message;
  step_result got;
  while ((got = of.take(me, 0, message)) == step_result::done) {
    if (message.length == 0 || message.length > kProducers + 1) return "a message that nobody sent is queued";
    ++count_of[message.length];
    if (of.release(me, message, 0) != step_result::done) return "what was queued could not be released";
  }
  if (got != step_result::none) return "what is left is corrupt";
  bool may_lose =
      victim != nullptr && g_world.victim >= static_cast<int>(kProducers) && (!of.redelivers || victim->number != 0);
  for (std::uint32_t i = 0; i <= kProducers; ++i) {
    const int count = count_of[i + 1];
    const bool was_sent = i < kProducers ? g_world.actors[i].has_sent : g_plan.queued != 0;
    const bool by_victim = i < kProducers && static_cast<int>(i) == g_world.victim;
    if (count > 1) return "message " + std::to_string(i + 1) + " was doubled";
    if (count == 1 && !was_sent && !by_victim) return "a message came that was not sent";
    if (count == 1 || !was_sent) continue;
    // One may be gone with the consumer that died: by drop any that it had begun to take, by redeliver only what it
    // had taken and begun to acknowledge.
    if (!may_lose || (of.redelivers && victim->number != i + 1))
      return "message " + std::to_string(i + 1) + " was lost";
    may_lose = false;
  }
  // Each slot and each buffer is of use.
  for (std::uint32_t round = 0; round < 2; ++round) {
    claimed mine[2];
    for (claimed& one : mine) {
      if (test::claim(of, me, one) != step_result::done) return "a buffer is stuck";
      if (of.publish(me, 0, one, 7, 0) != step_result::done) return "a slot is stuck";
    }
    for (std::uint32_t i = 0; i < 2; ++i) {
      if (of.take(me, 0, message) != step_result::done) return "a message is stuck";
      if (of.release(me, message, 0) != step_result::done) return "a message cannot be released";
    }
  }
  return {};
}

bool can_move(std::uint32_t index) {
  if (g_world.actors[index].is_over || static_cast<int>(index) == g_world.victim) return false;
  return index < kUsers || g_world.victim >= 0;
}

// `depth` saved states, each reused.
std::vector<std::unique_ptr<saved>> g_saved;

void explore(tally& all, std::size_t depth) {
  if (!all.broken.empty() || !all.seen.insert(state_now())) return;
  if (g_saved.size() <= depth) g_saved.push_back(std::make_unique<saved>());
  saved& here = *g_saved[depth];
  bool is_end = true;
  for (std::uint32_t i = 0; i < g_world.actor_count; ++i) {
    if (!can_move(i)) continue;
    is_end = false;
    save(here, i);
    go_on(i);
    ++all.steps;
    all.path.push_back(i);
    explore(all, depth + 1);
    if (!all.broken.empty()) return;
    all.path.pop_back();
    restore(here, i);
  }
  // Killed here; also when it has done all, and before it has done anything.
  if (g_world.victim < 0 && g_plan.victim >= 0) {
    is_end = false;
    g_world.victim = g_plan.victim;
    all.path.push_back(100);
    explore(all, depth + 1);
    if (!all.broken.empty()) return;
    all.path.pop_back();
    g_world.victim = -1;
  }
  if (!is_end) return;
  ++all.ends;
  save(here, 0);
  all.broken = check_end();
  if (all.broken.empty()) restore(here, 0);
}

bool check(const plan_of_run& plan, std::uint64_t& states) {
  g_plan = plan;
  std::memset(static_cast<void*>(&g_world.memory), 0, sizeof g_world.memory);
  g_world.view = g_world.memory.begin(plan.redelivers);
  g_world.victim = -1;
  // By whom does not matter: it is nobody's now.
  claimed before;
  const owner_id first(0, 0);
  if (plan.queued != 0 && (test::claim(g_world.view, first, before) != step_result::done ||
                           g_world.view.publish(first, 0, before, kProducers + 1, 0) != step_result::done)) {
    std::abort();
  }
  g_world.actor_count = kUsers + plan.recoverers;
  for (std::uint32_t i = 0; i < g_world.actor_count; ++i) {
    actor& one = g_world.actors[i];
    one.history = 0;
    one.number = 0;
    one.is_over = one.has_sent = one.has_taken = one.has_released = one.saw_corrupt = false;
    getcontext(&one.context);
    one.context.uc_stack = {one.stack, 0, sizeof one.stack};
    one.context.uc_link = nullptr;
    makecontext(&one.context, run_actor, 0);
    // To before its first step; those that do nothing are over. One recovers once there is somebody to recover.
    if (i < kUsers) go_on(i);
  }
  const auto all = std::make_unique<tally>();
  explore(*all, 0);
  std::printf(
      "%u producers, %u consumers, %u queued, victim %d, %u recoverers, %s: %zu states, %llu steps, %llu ends\n",
      plan.producers, plan.consumers, plan.queued, plan.victim, plan.recoverers, plan.redelivers ? "redeliver" : "drop",
      all->seen.size(), static_cast<unsigned long long>(all->steps), static_cast<unsigned long long>(all->ends));
  states += all->seen.size();
  if (all->ends == 0 && all->broken.empty()) all->broken = "no end was reached";
  if (all->broken.empty()) return true;
  std::printf("broken: %s, by the steps of", all->broken.c_str());
  for (const std::uint32_t one : all->path) one == 100 ? std::printf(" KILL") : std::printf(" %u", one);
  std::printf("\n");
  return false;
}

int main_of(int count, char** arguments) {
  bool large = false, stops_at_first = false;
  for (int i = 1; i < count; ++i) {
    if (std::string_view(arguments[i]) == "--large") {
      large = true;
    } else if (std::string_view(arguments[i]) == "--first") {
      stops_at_first = true;
    } else {
      std::fprintf(stderr, "usage: model_check [--large] [--first]\n");
      return 2;
    }
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::uint64_t states = 0;
  int broken = 0;
  struct size {
    std::uint32_t producers, consumers, recoverers, queued;
  };
  const std::vector<size> sizes = large ? std::vector<size>{{2, 1, 1, 0}, {2, 2, 1, 0}, {1, 2, 2, 1}}
                                        : std::vector<size>{{1, 1, 2, 0}, {1, 1, 1, 1}, {1, 2, 1, 0}, {1, 2, 1, 1}};
  g_sees_facts = !large;
  for (const size& one : sizes) {
    for (const bool redelivers : {false, true}) {
      for (const int victim : {-1, 0, static_cast<int>(kProducers)}) {
        if (broken != 0 && stops_at_first) break;
        if (!check({redelivers, one.recoverers, victim, one.producers, one.consumers, one.queued}, states)) ++broken;
      }
    }
  }
  std::printf("%llu states, %d broken\n", static_cast<unsigned long long>(states), broken);
  return broken == 0 ? 0 : 1;
}

}  // namespace
}  // namespace forksight::ipc::test

namespace forksight::ipc::detail {

void model_step(const void* word) {
  test::actor* const self = test::g_running;
  if (self == nullptr || test::is_fact(word)) return;
  self->history = test::mixed(self->history, 1);
  swapcontext(&self->context, &test::g_world.explorer);
}

void model_saw(std::uint64_t value) {
  test::actor* const self = test::g_running;
  if (self != nullptr) self->history = test::mixed(self->history + 1, value);
}

}  // namespace forksight::ipc::detail

int main(int count, char** arguments) { return forksight::ipc::test::main_of(count, arguments); }
