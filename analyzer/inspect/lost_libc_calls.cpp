// A function of libc's that a child waits in for a lock of libc's own: who was inside of it at the fork is inferred
// from who is inside of a function with the same lock now.
#include <algorithm>

#include "inspect/builder.hpp"

namespace forksight::inspect {

// The one thread that fork() left behind of which this is so; of several it is not known which.
std::optional<model::ThreadId> Builder::find_only(const model::Fork& fork,
                                                  const std::function<bool(const model::Thread&)>& is_it) const {
  std::optional<model::ThreadId> found;
  for (const model::ThreadId id : fork.lost_threads) {
    if (!is_it(model_.threads[id])) continue;
    if (found) return std::nullopt;
    found = id;
  }
  return found;
}

// Inside of a function with one of the locks, and not because it waits as well.
StuckCall Builder::find_call_in_flight(std::size_t subject, std::int32_t tid, const StuckCall& waiting) {
  const ThreadFacts& facts = facts_of(subject, tid);
  if (waiting.word != 0 && facts.call.word == waiting.word) return {};
  StuckCall found = recognise_outer_libc_call(facts.stack, callee_of(subject));
  return (found.libc_call.locks & waiting.libc_call.locks) != 0 ? found : StuckCall();
}

void Builder::touch_libc_call(model::Touch touch, const StuckCall& call, model::Fork& fork) {
  // Another thread of the child's own has it: no fork is to blame.
  const bool is_own = std::ranges::any_of(subjects_[touch.process].image.threads, [&](const image::Thread& thread) {
    return thread.tid != touch.tid && find_call_in_flight(touch.process, thread.tid, call).libc_call.locks != 0;
  });
  if (is_own) return;
  model::CallInFlight flight;
  flight.call = call.libc_call;
  // The thread itself, below a signal handler.
  const auto& frames = facts_of(touch.process, touch.tid).stack.frames;
  const auto handler = std::ranges::find(frames, model::kSignalFrame, &model::Frame::function);
  model::Stack interrupted;
  if (handler != frames.end()) interrupted.frames.assign(handler + 1, frames.end());
  const StuckCall own = recognise_outer_libc_call(interrupted, callee_of(touch.process));
  if ((own.libc_call.locks & call.libc_call.locks) != 0) {
    // Without a parent it is not known whether the handler forked, or was the child's: that is told as likely, and no
    // lock with it.
    const bool is_absent = subjects_[fork.process].is_absent;
    if (is_absent) fork.stack.frames.assign(handler == frames.begin() ? handler : handler - 1, frames.end());
    // The parent's thread is not below the same handler: it is the child's, and no fork is to blame.
    if (is_absent || !fork.stack.known()) return;
    flight.call = own.libc_call;
    flight.called_at = own.stack;
    flight.by_forking_thread = true;
  }
  flight.thread = fork.forking_thread;
  if (!flight.by_forking_thread) {
    const auto inside = find_only(fork, [&](const model::Thread& thread) {
      return find_call_in_flight(fork.process, thread.tid, call).libc_call.locks != 0;
    });
    flight.thread = inside ? *inside : other_thread(fork);
    if (inside) {
      const StuckCall other = find_call_in_flight(fork.process, model_.threads[*inside].tid, call);
      flight.call = other.libc_call;
      flight.called_at = other.stack;
    }
  }
  touch.kind = model::TouchKind::kLibcCall;
  touch.call = call.libc_call;
  touch.in_flight = fork.calls.size();
  fork.calls.push_back(std::move(flight));
  model_.touches.push_back(std::move(touch));
}

}  // namespace forksight::inspect
