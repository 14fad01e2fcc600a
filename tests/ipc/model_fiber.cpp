// This file calls _longjmp() to another stack. With _FORTIFY_SOURCE, glibc would end the program there.
#undef _FORTIFY_SOURCE
#include "model_fiber.hpp"

#include <setjmp.h>
#include <ucontext.h>

#include <cstdlib>
#include <cstring>

#include "model_world.hpp"
#include "recovery.hpp"

namespace forksight::ipc::test {
namespace {

using namespace detail;

constexpr std::size_t kStack = 64 * 1024;
alignas(64) char g_stack[kStack];
char g_kept[kStack];  // the part of g_stack that was in use
std::size_t g_kept_size = 0;
jmp_buf g_explorer, g_registers;
bool g_is_running = false;
const void* g_next = nullptr;
actor_view g_view;
std::uint32_t g_actor = 0;

void produce(std::uint32_t index) {
  const ring& of = g_world.view;
  const owner_id me(index, 0);
  claimed mine;
  const step_result got = test::claim(of, me, mine);
  g_view.saw_corrupt |= got == step_result::corrupt;
  if (got != step_result::done) return;
  // The model has no payload, so the number of the message is passed as its length.
  const step_result sent = of.publish(me, index, mine, index + 1, 0);
  g_view.has_sent = sent == step_result::done;
  g_view.saw_corrupt |= sent == step_result::corrupt || sent == step_result::evicted;
  if (sent == step_result::none) g_view.saw_corrupt |= of.give_back(me, mine, 0) != step_result::done;
}

void consume(std::uint32_t index) {
  const ring& of = g_world.view;
  const act what = g_world.plan.act_of(index);
  const owner_id me(index, 0);
  taken message;
  take_hint hint;
  const bool is_caretaker = what == act::clear || what == act::requeue;
  const step_result got = is_caretaker ? of.withdraw(me, 0, message) : of.take(me, index, 0, hint, message);
  g_view.searched = hint.searched.load();
  g_view.saw_corrupt |= got == step_result::corrupt || got == step_result::evicted;
  if (got == step_result::none && g_world.plan.asks_for_end) g_view.saw_end = of.is_drained(me);
  if (got != step_result::done) return;
  g_view.has_taken = true;
  g_view.number = static_cast<std::uint32_t>(message.length);
  // If more than max_redeliver consumers died while each of them held the same message, the queue parks this message:
  // it sets the message aside, and delivers it to no other consumer.
  if (!is_caretaker) g_view.saw_corrupt |= message.deliveries > of.max_redeliver + 1;
  step_result put = step_result::none;
  switch (what) {
    case act::consume:
    case act::clear: put = of.release(me, message, 0); break;
    case act::park: put = of.park(me, index, message, 0); break;
    case act::requeue: put = of.requeue(me, message, 0); break;
  }
  g_view.saw_corrupt |= put != step_result::done;
  g_view.has_put_back = put == step_result::done && (what == act::park || what == act::requeue);
  g_view.has_released = put == step_result::done && !g_view.has_put_back;
}

void recover_victim() {
  recovered what;
  const auto index = static_cast<std::uint32_t>(g_world.plan.victim);
  (void)recovery::recover(g_world.view, index, memory_of_ring::identity_of(index), 0, what);
  // With redeliver, no message may be lost: a message that the dead consumer had not released goes to another consumer.
  if (g_world.plan.redelivers && what.lost != 0) g_view.saw_corrupt = true;
}

void run_actor() {
  const std::uint32_t index = g_actor;
  if (index >= kUsers) {
    if (g_world.plan.victim >= 0) recover_victim();
  } else if (!g_world.plan.takes_part(index)) {
    // This user does nothing in this plan.
  } else if (index < kProducers) {
    produce(index);
  } else {
    consume(index);
  }
  g_view.is_over = true;
  g_next = nullptr;
  g_kept_size = 0;
  _longjmp(g_explorer, 1);
}

[[noreturn, gnu::noinline]] void leave() {
  // Copies the frames of all callers. They lie above the frame address of this function. This function's own frame is
  // not needed again.
  const char* const from = static_cast<const char*>(__builtin_frame_address(0));
  g_kept_size = static_cast<std::size_t>(g_stack + kStack - from);
  std::memcpy(g_kept, from, g_kept_size);
  _longjmp(g_explorer, 1);
}

suspended put_by() {
  g_is_running = false;
  suspended made;
  made.view = g_view;
  made.next = g_next;
  if (made.next == nullptr) return made;
  made.bytes.assign(reinterpret_cast<const char*>(&g_registers), sizeof g_registers);
  made.bytes.append(g_kept, g_kept_size);
  return made;
}

}  // namespace

suspended start_actor(std::uint32_t actor) {
  static ucontext_t begin;
  std::memset(g_stack, 0, sizeof g_stack);
  std::memset(&g_registers, 0, sizeof g_registers);
  g_view = {};
  g_actor = actor;
  getcontext(&begin);
  begin.uc_stack = {g_stack, 0, sizeof g_stack};
  begin.uc_link = nullptr;
  makecontext(&begin, run_actor, 0);
  g_is_running = true;
  if (_setjmp(g_explorer) == 0) setcontext(&begin);
  return put_by();
}

suspended resume_actor(const suspended& from) {
  // Clears the part of the stack that is not in use. A frame may have bytes that the code does not write. These bytes
  // must be the same in each run, so that actors in the same state consist of the same bytes.
  std::memset(g_stack, 0, sizeof g_stack);
  std::memcpy(&g_registers, from.bytes.data(), sizeof g_registers);
  const std::size_t size = from.bytes.size() - sizeof g_registers;
  std::memcpy(g_stack + kStack - size, from.bytes.data() + sizeof g_registers, size);
  g_view = from.view;
  g_is_running = true;
  if (_setjmp(g_explorer) == 0) _longjmp(g_registers, 1);
  return put_by();
}

}  // namespace forksight::ipc::test

namespace forksight::ipc::detail {

void model_step(const void* word) {
  if (!test::g_is_running || test::word_table::is_ignored(word)) return;
  test::g_next = word;
  if (_setjmp(test::g_registers) == 0) test::leave();
}

void model_saw(std::uint64_t /*value*/) {}

}  // namespace forksight::ipc::detail
