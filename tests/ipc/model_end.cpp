// Checks an end: a state in which no actor can make a step. Each sent message must have been taken once, or still be in
// the ring. At most one message may be lost, and only with a consumer that died. Each slot and each buffer must still
// be usable.
#include <string>

#include "model_explorer.hpp"

namespace forksight::ipc::test {

using namespace detail;

namespace {

struct counts {
  int of[kProducers + 2] = {};         // how often each message was taken and not put back
  int delivered[kProducers + 2] = {};  // how often each message was taken by take(), even if it was put back
};

// Takes the remaining messages, as a consumer that has not searched before. Then takes the parked messages.
std::string take_the_rest(const owner_id& me, counts& so_far) {
  const ring& of = g_world.view;
  for (const bool parked : {false, true}) {
    taken message;
    step_result got;
    while ((got = parked ? of.withdraw(me, 0, message) : test::take(of, me, message)) == step_result::done) {
      if (message.length == 0 || message.length > kProducers + 1) return "a message that nobody sent is queued";
      ++so_far.of[message.length];
      if (!parked) ++so_far.delivered[message.length];
      if (of.release(me, message, 0) != step_result::done) return "a queued message could not be released";
    }
    if (got != step_result::none) return "the ring is corrupt at the end";
  }
  return {};
}

// True if the message with that number may have been lost with the victim.
bool may_be_gone(const plan_of_run& plan, const actor_view& victim, std::uint32_t number) {
  if (plan.victim < static_cast<int>(kProducers)) return false;
  switch (plan.act_of(static_cast<std::uint32_t>(plan.victim))) {
    // With drop, the victim may have begun to take any message. With redeliver, only the message that the victim had
    // taken may be gone, because the victim may have released that message before it died.
    case act::consume: return !plan.redelivers || victim.number == number;
    case act::park: return !plan.redelivers;
    case act::clear: return victim.number == number;
    case act::requeue: return false;
  }
  return false;
}

std::string check_counts(const ending& what, const counts& found) {
  const plan_of_run& plan = g_world.plan;
  const actor_view* const victim = what.is_dead ? &what.views[plan.victim] : nullptr;
  bool may_lose = victim != nullptr;
  for (std::uint32_t i = 0; i <= kProducers; ++i) {
    const int count = found.of[i + 1];
    const bool was_sent = i < kProducers ? what.views[i].has_sent : plan.first != first_message::none;
    const bool by_victim = what.is_dead && static_cast<int>(i) == plan.victim;
    if (count > 1) return "message " + std::to_string(i + 1) + " was taken twice";
    if (count == 1 && !was_sent && !by_victim) return "a message came that was not sent";
    if (count == 1 || !was_sent) continue;
    // At most one message may be lost with the consumer that died.
    if (!may_lose || !may_be_gone(plan, *victim, i + 1)) return "message " + std::to_string(i + 1) + " was lost";
    may_lose = false;
  }
  if (plan.first == first_message::parked && !plan.has(act::requeue) && found.delivered[kProducers + 1] != 0) {
    return "a parked message was delivered, and nobody had requeued it";
  }
  return {};
}

// A consumer that found no returned message searches again only after header::returns has changed. So if the ring now
// has a returned message, header::returns must differ from the value that each live user saw in its last search.
std::string check_searches(const ending& what) {
  const plan_of_run& plan = g_world.plan;
  const ring& of = g_world.view;
  bool has_returned = false;
  for (std::uint32_t i = 0; i < of.buffer_count; ++i) {
    has_returned |= buffer_word::of(of.buffers[i].word.load()).state == buffer_state::returned;
  }
  const std::uint64_t returns = of.head->returns.load();
  for (std::uint32_t i = 0; i < kUsers; ++i) {
    const actor_view& one = what.views[i];
    if (what.is_dead && static_cast<int>(i) == plan.victim) continue;
    if (has_returned && one.searched == returns) return "a consumer will not look for a returned message";
  }
  return {};
}

// After a consumer was told that nothing can come any more, no message may be delivered. Only a requeue may change
// that.
std::string check_told_end(const ending& what, const counts& left) {
  const plan_of_run& plan = g_world.plan;
  for (std::uint32_t i = 0; i < kUsers; ++i) {
    const actor_view& one = what.views[i];
    if (what.is_dead && static_cast<int>(i) == plan.victim) continue;
    if (!one.saw_end || plan.has(act::requeue)) continue;
    for (const int count : left.delivered) {
      if (count != 0) return "a consumer was told that no message can come, and a message was delivered later";
    }
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
      if (test::take(of, me, message) != step_result::done) return "a message is stuck";
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
    if (one.saw_corrupt)
      return "a step of actor " + std::to_string(i) + " failed, or the actor lost its buffer or message";
    if (!one.has_taken) continue;
    if (one.number == 0 || one.number > kProducers + 1) return "a message that nobody sent was taken";
    if (!one.has_put_back) ++found.of[one.number];
    if (g_world.plan.act_of(i) == act::consume || g_world.plan.act_of(i) == act::park) ++found.delivered[one.number];
  }
  if (victim >= 0 && g_world.memory.participants[victim].word.load() ==
                         memory_of_ring::identity_of(static_cast<std::uint32_t>(victim)).bits()) {
    return "the entry of the dead process is not free";
  }
  for (std::uint32_t i = 0; i < of.buffer_count; ++i) {
    const buffer_word word = buffer_word::of(of.buffers[i].word.load());
    const bool is_somewhere = word.state == buffer_state::free || word.state == buffer_state::queued ||
                              word.state == buffer_state::returned || word.state == buffer_state::parked;
    if (!is_somewhere) return "a buffer is neither free nor queued nor returned nor parked";
  }
  const owner_id me(victim == 3 ? 2 : 3, 0);
  counts left;
  std::string broken = check_searches(what);
  if (broken.empty()) broken = take_the_rest(me, left);
  if (broken.empty()) broken = check_told_end(what, left);
  for (std::uint32_t i = 0; i <= kProducers + 1; ++i) {
    found.of[i] += left.of[i];
    found.delivered[i] += left.delivered[i];
  }
  if (broken.empty()) broken = check_counts(what, found);
  if (broken.empty()) broken = fill_and_empty(me);
  return broken;
}

}  // namespace forksight::ipc::test
