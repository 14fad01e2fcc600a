#include "diagnose/handlers.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "diagnose/openmp.hpp"
#include "diagnose/wait_cycles.hpp"
#include "diagnose/words.hpp"

namespace forksight::handlers {

namespace {

constexpr const char* kPhaseNames[] = {"prepare", "parent", "child"};

std::size_t index_of(model::HandlerPhase phase) { return static_cast<std::size_t>(phase); }

std::string ordinal(std::uint32_t number) {
  const std::uint32_t last = number % 10;
  const bool is_teen = number / 10 % 10 == 1;
  const char* const ending = is_teen || last == 0 || last > 3 ? "th" : last == 1 ? "st" : last == 2 ? "nd" : "rd";
  return fmt::format("{}{}", number, ending);
}

std::string plain_name(const model::Model& model, model::HandlerId id, model::HandlerPhase phase, bool with_library) {
  const model::AtforkHandlers& handlers = model.handlers[id];
  const std::string& function = handlers.functions[index_of(phase)];
  std::string name = fmt::format("{} handler", kPhaseNames[index_of(phase)]);
  if (!function.empty()) name += ' ' + function;
  if (with_library && !handlers.library.empty()) name += fmt::format(" of {}", words::base_name(handlers.library));
  return name;
}

// Returns a name such as "prepare handler shutdown_pool of libfoo.so (1st of 2)".
std::string handler_name(const model::Model& model, const model::HandlerRun& run, bool with_library) {
  const std::string name = plain_name(model, run.handlers, run.phase, with_library);
  return run.place == 0 ? name : name + fmt::format(" ({} of {})", ordinal(run.place), run.of);
}

const model::HandlerWait* innermost_wait(const model::HandlerRun& run) {
  return run.waits.empty() ? nullptr : &run.waits.back();
}

std::string object_name(const model::HandlerWait& wait, const char* kind) {
  return wait.object_name.empty() ? fmt::format("the {} at {:#x}", kind, wait.object) : wait.object_name;
}

// Names the thread for which the handler waits: "thread 12 "worker" (a worker of OpenBLAS)", or "the forking thread
// itself".
std::string owner_words(const model::Model& model, const model::HandlerRun& run, const model::HandlerWait& wait) {
  const model::Thread& owner = model.threads[*wait.owner];
  const bool is_self = run.thread ? *run.thread == *wait.owner : owner.tid == run.tid;
  return is_self ? "the forking thread itself" : words::thread(owner) + words::worker_of(owner);
}

// Says what the handler does: "locks cache_mu (app.c:31), which thread 12 took at app.c:20".
std::string wait_words(const model::Model& model, const model::HandlerRun& run, const model::HandlerWait& wait) {
  std::string place = words::place(wait.stack);
  if (!place.empty()) place = fmt::format(" ({})", place);
  switch (wait.kind) {
    case model::HandlerWaitKind::kJoin:
      return wait.owner ? fmt::format("joins {}{}", owner_words(model, run, wait), place)
                        : fmt::format("joins a thread{}", place);
    case model::HandlerWaitKind::kCondition:
      return fmt::format("waits on {}{}", object_name(wait, "condition variable"), place);
    case model::HandlerWaitKind::kLock: break;
  }
  std::string text = fmt::format("locks {}{}", object_name(wait, "lock"), place);
  if (wait.owner) {
    text += fmt::format(", which {} {}", owner_words(model, run, wait),
                        wait.owner_stack.known() ? "took" + words::at(" at ", wait.owner_stack) : "holds");
  }
  return text;
}

std::string touch_words(const model::Model& model, const model::Touch& touch) {
  std::string place = words::place(touch.stack);
  if (!place.empty()) place = fmt::format(" ({})", place);
  if (const model::Pool* const pool = openmp::find_lost_pool(model, touch)) {
    return fmt::format("waits for its {}{}, whose workers were not copied by fork()", openmp::pool_name(*pool), place);
  }
  if (!touch.held) return {};
  const model::Fork& fork = model.forks[touch.fork];
  const model::Held& held = fork.held[*touch.held];
  const std::string taken = words::at(" at ", held.acquired_at);
  // If the lock was already held at the fork of an ancestor, its holder is the thread that forked in that ancestor.
  // Then the holder is not the thread that forked this process.
  const bool is_forking_thread = held.by_forking_thread && fork.child == touch.process;
  const std::string holder =
      is_forking_thread ? "the forking thread itself" : words::thread(model.threads[held.holder]);
  return fmt::format("locks {}{}, which {} {} and which no thread of the child holds",
                     words::lock(model.locks[held.lock]), place, holder, taken.empty() ? "held" : "took" + taken);
}

const model::Stack& fork_stack_of(const model::Model& model, const model::HandlerRun& run) {
  return run.fork_stack.known() || !run.fork ? run.fork_stack : model.forks[*run.fork].stack;
}

std::string order_sentence(const model::Model& model, const model::HandlerRun& run) {
  const std::string library = model.handlers[run.handlers].library;
  if (run.place == 0) {
    return library.empty() ? std::string() : fmt::format("This handler belongs to {}.", words::base_name(library));
  }
  return fmt::format(
      "The {} handlers are called {}; this handler is number {} of {}{}.", kPhaseNames[index_of(run.phase)],
      run.phase == model::HandlerPhase::kPrepare ? "last registered first" : "first registered first", run.place,
      run.of, library.empty() ? std::string() : fmt::format(", registered by {}", words::base_name(library)));
}

// Returns the prepare handlers that were called before this one. Prepare handlers are called in the reverse order of
// their registration.
std::vector<model::HandlerId> find_earlier(const model::Model& model, const model::HandlerRun& run) {
  std::vector<model::HandlerId> earlier;
  for (model::HandlerId id = run.handlers + 1; id < model.handlers.size() && earlier.size() + 1 < run.place; ++id) {
    if (model.handlers[id].has[index_of(run.phase)]) earlier.push_back(id);
  }
  return earlier;
}

// Returns the earlier handler that took the lock: the handler whose function is on the stack on which the lock was
// taken. If that stack shows no handler's function, the library whose code took the lock decides. If this library has
// exactly one earlier handler, returns that handler.
std::optional<model::HandlerId> find_taker(const model::Model& model, const model::HandlerRun& run,
                                           const model::HandlerHold& hold) {
  std::vector<model::HandlerId> of_library;
  for (const model::HandlerId id : find_earlier(model, run)) {
    const model::AtforkHandlers& handlers = model.handlers[id];
    const auto is_its = [&](const model::Frame& frame) {
      return !frame.function.empty() && frame.function == handlers.functions[index_of(run.phase)] &&
             frame.module == handlers.library;
    };
    if (std::ranges::any_of(hold.taken_at.frames, is_its)) return id;
    if (hold.taken_at.known() && hold.taken_at.frames.front().module == handlers.library) of_library.push_back(id);
  }
  return of_library.size() == 1 ? std::optional(of_library.front()) : std::nullopt;
}

}  // namespace

std::string name(const model::Model& model, model::HandlerId handlers, model::HandlerPhase phase) {
  return plain_name(model, handlers, phase, true);
}

std::string name(const model::HandlerHold& hold) {
  return hold.object_name.empty() ? fmt::format("the lock at {:#x}", hold.object) : hold.object_name;
}

std::optional<Inversion> find_inversion(const Evidence& evidence, const model::HandlerRun& run) {
  const model::HandlerWait* const own = innermost_wait(run);
  if (run.holds.empty() || own == nullptr || own->kind != model::HandlerWaitKind::kLock) return std::nullopt;
  for (const auto& [ring, index] : evidence.places_in_rings(run.process, run.tid)) {
    const cycles::Link& before = (*ring)[(index + ring->size() - 1) % ring->size()];
    const auto is_held = [&](const model::HandlerHold& hold) { return hold.object == before.wait->object; };
    const auto hold = std::ranges::find_if(run.holds, is_held);
    if (ring->size() < 2 || before.process != run.process || hold == run.holds.end()) continue;
    return Inversion{&*hold, before.wait, find_taker(evidence.model(), run, *hold),
                     cycles::is_made_of(*ring, {"mutex", "rwlock"})};
  }
  return std::nullopt;
}

// The atfork handler waits for another thread: for the owner of a lock, or for a thread that it joins. Returns true if
// a signal handler may wake that other thread. Returns false if the other thread itself waits for a lock or for the end
// of a thread, because no signal handler can end such a wait.
bool may_other_be_woken(const Evidence& evidence, const model::HandlerRun& run) {
  const model::Process& process = evidence.process(run.process);
  const model::HandlerWait* const wait = innermost_wait(run);
  if (wait == nullptr || !wait->owner || !has_way_out(process)) return false;
  const std::int32_t owner = evidence.model().threads[*wait->owner].tid;
  const model::Wait* const its_wait = evidence.find_wait(run.process, owner);
  const bool is_bound =
      its_wait != nullptr && its_wait->kind == model::WaitKind::kFutex && its_wait->use != model::FutexUse::kUnknown;
  return owner != run.tid && !is_bound;
}

std::optional<CallEnd> find_end(const Evidence& evidence, const model::HandlerRun& run) {
  const model::Process& process = evidence.process(run.process);
  if (run.phase == model::HandlerPhase::kChild && process.has_execed) return std::nullopt;
  if (no_signal_can_wake(process)) return CallEnd{Certainty::kProven, Outcome::kHang};
  // `liveness` is the state in which the process was last seen. Somebody may have ended the process afterwards.
  switch (process.liveness) {
    case model::Liveness::kDeadButForSignal:
      if (may_other_be_woken(evidence, run)) return std::nullopt;  // a healthy program may wait in this way
      return CallEnd{Certainty::kLikely, Outcome::kMayHang};
    case model::Liveness::kSpinning:
    case model::Liveness::kStalled: return CallEnd{Certainty::kLikely, Outcome::kHang};
    default: return std::nullopt;
  }
}

Finding describe(const char* slug, const Evidence& evidence, const model::HandlerRun& run, const CallEnd& end,
                 const model::Touch* touch) {
  const model::Model& model = evidence.model();
  const model::Process& process = evidence.process(run.process);
  const model::HandlerWait* const wait = innermost_wait(run);
  const model::AtforkHandlers& handlers = model.handlers[run.handlers];
  const model::Stack& fork_stack = fork_stack_of(model, run);
  std::string waits = touch == nullptr ? std::string() : touch_words(model, *touch);
  if (waits.empty() && wait != nullptr) waits = wait_words(model, run, *wait);
  Finding finding;
  finding.rule = slug;
  finding.harm = end.harm;
  finding.cause = Certainty::kProven;
  finding.outcome = end.outcome;
  finding.process = run.process;
  finding.processes = {run.process};
  finding.tid = run.tid;
  if (run.thread) finding.thread_name = model.threads[*run.thread].name;
  const model::Wait* const seen = evidence.find_wait(run.process, run.tid);
  if (finding.thread_name.empty() && seen != nullptr) finding.thread_name = seen->name;
  finding.culprit.kind = CulpritKind::kHandler;
  finding.culprit.name = handler_name(model, run, false);
  finding.culprit.library = handlers.library;
  if (touch != nullptr && touch->held) {
    const model::Held& held = model.forks[touch->fork].held[*touch->held];
    finding.culprit.holder = evidence.holder(model.threads[held.holder]);
    finding.culprit.stack = held.acquired_at;
  } else if (wait != nullptr && wait->owner) {
    finding.culprit.holder = evidence.holder(model.threads[*wait->owner]);
    finding.culprit.holder->alive = model.threads[*wait->owner].process == run.process;
    finding.culprit.stack = wait->owner_stack.known() ? wait->owner_stack : model.threads[*wait->owner].created_at;
  }
  // A `place` of 0 means that the handler was seen only from outside.
  finding.culprit.is_now = run.place == 0 && finding.culprit.stack.known();
  if (wait != nullptr) finding.stack = wait->stack;
  if (touch != nullptr) finding.stack = touch->stack;
  if (seen != nullptr && seen->stack.known() && !seen->stack.cut) finding.stack = seen->stack;
  if (run.fork) {
    finding.fork = evidence.fork_site(model.forks[*run.fork]);
  } else {
    finding.fork = ForkSite{process.pid, 0, fork_stack};
  }
  finding.summary =
      fmt::format("{} {} in fork(){}: {} {}", evidence.name(run.process), hangs(process), words::at(" at ", fork_stack),
                  handler_name(model, run, true), waits.empty() ? "does not return" : waits);
  add_sentence(finding, fmt::format("Thread {} of {} called fork(){}, and fork() returns only after it has called the "
                                    "handlers that pthread_atfork() registered.",
                                    run.tid, evidence.name(run.process), words::at(" at ", fork_stack)));
  add_sentence(finding, order_sentence(model, run));
  if (!waits.empty()) add_sentence(finding, fmt::format("The handler {}.", waits));
  add_sentence(finding, evidence.describe_liveness(process));
  add_sentence(finding, describe_end(process));
  return finding;
}

}  // namespace forksight::handlers
