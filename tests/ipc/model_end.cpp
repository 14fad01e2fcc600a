// What must hold when nobody moves any more: what was sent came once, or is there; each slot and buffer is of use.
#include <string>

#include "model_explorer.hpp"

namespace forksight::ipc::test {

using namespace detail;

namespace {

struct counts {
  int of[kProducers + 2] = {};
};

// What is left, by a consumer that comes now.
std::string take_the_rest(const owner_id& me, counts& so_far) {
  const ring& of = g_world.view;
  taken message;
  step_result got;
  while ((got = of.take(me, 0, message)) == step_result::done) {
    if (message.length == 0 || message.length > kProducers + 1) return "a message that nobody sent is queued";
    ++so_far.of[message.length];
    if (of.release(me, message, 0) != step_result::done) return "what was queued could not be released";
  }
  return got == step_result::none ? "" : "what is left is corrupt";
}

std::string check_counts(const ending& what, const counts& found) {
  const plan_of_run& plan = g_world.plan;
  const actor_view* const victim = what.is_dead ? &what.views[plan.victim] : nullptr;
  bool may_lose =
      victim != nullptr && plan.victim >= static_cast<int>(kProducers) && (!plan.redelivers || victim->number != 0);
  for (std::uint32_t i = 0; i <= kProducers; ++i) {
    const int count = found.of[i + 1];
    const bool was_sent = i < kProducers ? what.views[i].has_sent : plan.queued != 0;
    const bool by_victim = what.is_dead && static_cast<int>(i) == plan.victim;
    if (count > 1) return "message " + std::to_string(i + 1) + " was doubled";
    if (count == 1 && !was_sent && !by_victim) return "a message came that was not sent";
    if (count == 1 || !was_sent) continue;
    // One may be gone with the consumer that died: by drop any that it had begun to take, by redeliver only what it
    // had taken and begun to acknowledge.
    if (!may_lose || (plan.redelivers && victim->number != i + 1)) {
      return "message " + std::to_string(i + 1) + " was lost";
    }
    may_lose = false;
  }
  return {};
}

std::string fill_and_empty(const owner_id& me) {
  const ring& of = g_world.view;
  taken message;
  for (std::uint32_t round = 0; round < 2; ++round) {
    claimed mine[kBuffers];
    for (claimed& one : mine) {
      if (test::claim(of, me, one) != step_result::done) return "a buffer is stuck";
      if (of.publish(me, 0, one, 7, 0) != step_result::done) return "a slot is stuck";
    }
    for (std::uint32_t i = 0; i < kBuffers; ++i) {
      if (of.take(me, 0, message) != step_result::done) return "a message is stuck";
      if (of.release(me, message, 0) != step_result::done) return "a message cannot be released";
    }
  }
  return {};
}

}  // namespace

std::string check_end(const ending& what) {
  const ring& of = g_world.view;
  const int victim = what.is_dead ? g_world.plan.victim : -1;
  counts found;
  for (std::uint32_t i = 0; i < kUsers; ++i) {
    const actor_view& one = what.views[i];
    if (static_cast<int>(i) == victim) continue;
    if (one.saw_corrupt) return "actor " + std::to_string(i) + " was refused, or lost what it must not";
    if (!one.has_taken) continue;
    if (one.number == 0 || one.number > kProducers + 1) return "a message that nobody sent was taken";
    ++found.of[one.number];
  }
  if (victim >= 0 && g_world.memory.participants[victim].word.load() ==
                         memory_of_ring::identity_of(static_cast<std::uint32_t>(victim)).bits()) {
    return "the dead one's entry is not free";
  }
  for (std::uint32_t i = 0; i < of.buffer_count; ++i) {
    const buffer_word word = buffer_word::of(of.buffers[i].word.load());
    if (word.state != buffer_state::free && word.state != buffer_state::queued) return "a buffer is nobody's";
  }
  const owner_id me(victim == 3 ? 2 : 3, 0);
  std::string broken = take_the_rest(me, found);
  if (broken.empty()) broken = check_counts(what, found);
  if (broken.empty()) broken = fill_and_empty(me);
  return broken;
}

}  // namespace forksight::ipc::test
