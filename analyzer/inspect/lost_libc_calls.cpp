#include "inspect/lost_libc_calls.hpp"

#include <algorithm>

namespace forksight::inspect {

namespace {

// Finds on the stack of thread `tid` a libc call that takes one of the locks for which `waiting` waits. Finds nothing
// if thread `tid` itself waits at the same futex word, because then it does not have the lock.
StuckCall find_call_in_flight(Scene& scene, std::size_t subject, std::int32_t tid, const StuckCall& waiting) {
  const ThreadFacts& facts = scene.facts_of(subject, tid);
  if (waiting.word != 0 && facts.call.word == waiting.word) return {};
  StuckCall found = recognise_outer_libc_call(facts.stack, scene.callee_of(subject));
  return (found.libc_call.locks & waiting.libc_call.locks) != 0 ? found : StuckCall();
}

}  // namespace

void touch_libc_call(Scene& scene, LostThreads& lost, model::Touch touch, const StuckCall& call, model::Fork& fork) {
  // If another thread of the child itself is inside of a function that takes the lock, that thread has the lock. Then
  // the fork is not the cause.
  const bool is_own =
      std::ranges::any_of(scene.subjects[touch.process].image.threads, [&](const image::Thread& thread) {
        return thread.tid != touch.tid &&
               find_call_in_flight(scene, touch.process, thread.tid, call).libc_call.locks != 0;
      });
  if (is_own) return;
  model::CallInFlight flight;
  flight.call = call.libc_call;
  // The waiting thread itself may have the lock: a signal handler may have interrupted the thread inside of a function
  // that takes the lock. The interrupted frames show whether this is so.
  const auto& frames = scene.facts_of(touch.process, touch.tid).stack.frames;
  const auto handler = std::ranges::find(frames, model::kSignalFrame, &model::Frame::function);
  model::Stack interrupted;
  if (handler != frames.end()) interrupted.frames.assign(handler + 1, frames.end());
  const StuckCall own = recognise_outer_libc_call(interrupted, scene.callee_of(touch.process));
  if ((own.libc_call.locks & call.libc_call.locks) != 0) {
    // If the parent is absent, it is not known whether the handler called fork() or ran in the child only. The finding
    // is then likely, and names no lock.
    const bool is_absent = scene.subjects[fork.process].is_absent;
    if (is_absent) fork.stack.frames.assign(handler == frames.begin() ? handler : handler - 1, frames.end());
    // If the parent's thread is not inside of the same handler, the handler ran in the child only. Then the fork is not
    // the cause.
    if (is_absent || !fork.stack.known()) return;
    flight.call = own.libc_call;
    flight.called_at = own.stack;
    flight.by_forking_thread = true;
  }
  flight.thread = fork.forking_thread;
  if (!flight.by_forking_thread) {
    const auto inside = lost.find_only(fork, [&](const model::Thread& thread) {
      return find_call_in_flight(scene, fork.process, thread.tid, call).libc_call.locks != 0;
    });
    flight.thread = inside ? *inside : lost.other_thread(fork);
    if (inside) {
      const StuckCall other = find_call_in_flight(scene, fork.process, scene.model.threads[*inside].tid, call);
      flight.call = other.libc_call;
      flight.called_at = other.stack;
    }
  }
  touch.kind = model::TouchKind::kLibcCall;
  touch.call = call.libc_call;
  touch.in_flight = fork.calls.size();
  fork.calls.push_back(std::move(flight));
  scene.model.touches.push_back(std::move(touch));
}

}  // namespace forksight::inspect
