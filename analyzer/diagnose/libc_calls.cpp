#include "diagnose/libc_calls.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>

#include "diagnose/words.hpp"

namespace forksight::libc_calls {

namespace {

struct LockWords {
  std::string_view name;
  std::string_view what;
};

constexpr std::array kLocks = {
#define FORKSIGHT_LIBC_LOCK(id, name, what) LockWords{name, what},
#include "forksight/trace/libc_locks.def"
};
static_assert(kLocks.size() == static_cast<std::size_t>(trace::LibcLock::kCount));

const LockWords& words_of(trace::LibcLock lock) { return kLocks[static_cast<std::size_t>(lock)]; }

// True if there is no trace, and forksight sees only that a thread of the parent is in the function now.
bool is_inferred(const Evidence& evidence, const model::Touch& touch, const Lost& lost) {
  return evidence.fork(touch).is_inferred && lost.in_flight.called_at.known() && !lost.in_flight.by_forking_thread;
}

std::string holder_of(const Lost& lost) {
  return lost.in_flight.by_forking_thread ? std::string("the forking thread itself") : words::thread(lost.holder);
}

std::string summarise(const Evidence& evidence, const model::Touch& touch, const Lost& lost, const CallEnd& end) {
  const std::string child = evidence.name(touch.process);
  const std::string place = words::at(" at ", touch.stack);
  const std::string inside = fmt::format(
      "{} {} inside of {}{}{}{}", holder_of(lost), is_inferred(evidence, touch, lost) ? "of its parent is" : "was",
      lost.in_flight.call.function, words::at(" at ", lost.in_flight.called_at),
      is_inferred(evidence, touch, lost) ? "" : " during fork()", words::at(" at ", evidence.fork(touch).stack));
  if (end.outcome == Outcome::kCured) {
    return fmt::format("{} might have hung in {}{}, but the fork waited: {}", child, touch.call.function, place,
                       inside);
  }
  if (end.outcome == Outcome::kMayHang) {
    return fmt::format("{} has not come back from {}{}: {}", child, touch.call.function, place, inside);
  }
  return fmt::format("{} {} in {}{}: {}, with {} held", child, hangs(evidence.process(touch.process)),
                     touch.call.function, place, inside, what(lost.lock));
}

std::string tell_quiesced(const model::Fork& fork, const CallEnd& end) {
  if (!fork.quiesced) return {};
  const auto waited = words::duration(fork.quiesced->waited_ns / words::kNsPerMs);
  if (end.outcome == Outcome::kCured) {
    return fmt::format(
        "The fork waited {} until that call had ended (--cure=quiesce-libc), so the lock was free in the child.",
        waited);
  }
  return fmt::format(
      "The fork waited {} for that call to end (--cure=quiesce-libc), but {} still inside of such a call when the time "
      "was up.",
      waited, fork.quiesced->left == 1 ? "1 thread was" : fmt::format("{} threads were", fork.quiesced->left));
}

}  // namespace

std::optional<Lost> find_lost(const model::Model& model, const model::Touch& touch) {
  if (touch.kind != model::TouchKind::kLibcCall || !touch.in_flight) return std::nullopt;
  const model::CallInFlight& in_flight = model.forks[touch.fork].calls[*touch.in_flight];
  const std::uint64_t common = in_flight.call.locks & touch.call.locks;
  // kLocks begins with the locks that many functions take, and ends with the locks that one function takes. So the last
  // common lock is the one that the fewest functions take.
  const auto last = static_cast<std::size_t>(std::bit_width(common)) - 1;
  if (common == 0 || last >= kLocks.size()) return std::nullopt;
  return Lost{in_flight, model.threads[in_flight.thread], static_cast<trace::LibcLock>(last),
              static_cast<std::size_t>(std::popcount(common))};
}

bool is_in_handler(const model::Model& model, const model::Touch& touch, const Lost& lost) {
  return lost.in_flight.by_forking_thread && words::is_in_signal_handler(model.forks[touch.fork].stack);
}

std::string_view name(trace::LibcLock lock) { return words_of(lock).name; }
std::string_view what(trace::LibcLock lock) { return words_of(lock).what; }

std::optional<CallEnd> find_end(const Evidence& evidence, const model::Touch& touch) {
  if (touch.cured) return CallEnd{Certainty::kPossible, Outcome::kCured};
  const auto hang = evidence.find_hang(touch);
  if (!hang) return std::nullopt;
  const model::Process& child = evidence.process(touch.process);
  // If a thread waits for a lock of libc, it waits in a futex. If the child waits for a pipe or in wait4, it hangs for
  // another reason.
  const model::Wait* const wait = evidence.find_wait(touch.process, touch.tid);
  if (wait != nullptr && wait->kind != model::WaitKind::kFutex && is_proven_dead(child)) return std::nullopt;
  if (is_proven_dead(child)) return CallEnd{*hang, Outcome::kHang};
  if (child.liveness == model::Liveness::kSpinning) return CallEnd{Certainty::kLikely, Outcome::kHang};
  // Nobody looked at the process from outside. So the call may only have been slow when the process was killed.
  if (child.liveness == model::Liveness::kUnknown && !child.exit_status) {
    return CallEnd{Certainty::kPossible, Outcome::kMayHang};
  }
  return std::nullopt;
}

Finding describe(const Evidence& evidence, const char* slug, const model::Touch& touch, const Lost& lost,
                 const CallEnd& end) {
  const model::Process& child = evidence.process(touch.process);
  const model::Fork& fork = evidence.fork(touch);
  Finding finding = evidence.begin_finding(slug, touch);
  finding.harm = end.harm;
  finding.cause = is_inferred(evidence, touch, lost) ? Certainty::kLikely : evidence.find_cause(touch);
  finding.outcome = end.outcome;
  finding.culprit.kind = CulpritKind::kLock;
  finding.culprit.name = fmt::format("{} ({})", name(lost.lock), what(lost.lock));
  finding.culprit.library = lost.lock == trace::LibcLock::kLoader ? "ld-linux-x86-64.so.2" : "libc.so.6";
  finding.culprit.holder = evidence.holder(lost.holder);
  finding.culprit.stack = lost.in_flight.called_at;
  finding.summary = summarise(evidence, touch, lost, end);
  const std::string where = words::place_with_function(touch.stack);
  add_sentence(finding,
               fmt::format("Thread {} of {} called {}(){}, which takes {}.", touch.tid, evidence.name(touch.process),
                           touch.call.function, where.empty() ? where : " at " + where, what(lost.lock)));
  if (end.outcome == Outcome::kHang) add_sentence(finding, evidence.describe_liveness(child));
  if (is_inferred(evidence, touch, lost)) {
    add_sentence(finding,
                 fmt::format("{} of {} is inside of {}(){}, which takes the same lock. The thread is there now; "
                             "forksight infers that it was there at the fork already.",
                             words::thread(lost.holder), words::parent(evidence.process(fork.process)),
                             lost.in_flight.call.function, words::at(", called at ", lost.in_flight.called_at)));
  } else {
    add_sentence(finding, fmt::format("At the fork{}, {} of {} was inside of {}(){}, which takes the same lock.",
                                      words::at(" at ", fork.stack), words::thread(lost.holder),
                                      words::parent(evidence.process(fork.process)), lost.in_flight.call.function,
                                      words::at(", called at ", lost.in_flight.called_at)));
  }
  if (end.outcome == Outcome::kHang) {
    add_sentence(finding,
                 lost.in_flight.by_forking_thread
                     ? "The child's only thread is the copy of that thread. It waits for a lock that no other thread "
                       "can release."
                     : "The child has no such thread, and fork() leaves this lock as it was: nobody releases it.");
  }
  if (end.outcome == Outcome::kHang && lost.common > 1) {
    add_sentence(
        finding,
        fmt::format("The two functions share {} locks of libc; it is not known which of these the child waits for.",
                    lost.common));
  }
  add_sentence(finding, tell_quiesced(fork, end));
  add_sentence(finding, describe_end(child));
  return finding;
}

void add_fixes(const model::Fork& fork, const model::Touch& touch, const Lost& lost, Finding& finding) {
  finding.fixes.push_back({"Exec right after fork(), or use posix_spawn(): then no lock of the parent matters."});
  finding.fixes.push_back(
      {fmt::format("Call {}() before the fork, and give the child what it returned: between fork() and exec only "
                   "async-signal-safe functions are allowed in a process with threads (fork(2), signal-safety(7)).",
                   touch.call.function)});
  if (lost.in_flight.by_forking_thread) {
    finding.fixes.push_back({fmt::format("Fork after {}() has returned.", lost.in_flight.call.function)});
    return;
  }
  finding.fixes.push_back({fmt::format("Fork before {} is started, or while it does not call {}().",
                                       words::thread(lost.holder), lost.in_flight.call.function)});
  const bool is_tested = finding.rule == "libc-lock-in-flight";
  const bool was_in_vain = fork.quiesced && fork.quiesced->left > 0 && !touch.cured;
  if (was_in_vain) {
    finding.fixes.push_back(
        {"If that call does end, let the fork wait longer: give a larger MS in --cure=quiesce-libc=MS."});
  } else if (touch.cured) {
    finding.fixes.push_back(
        {"Keep running under `forksight run --cure=quiesce-libc=MS -- ...`: each fork then waits until such calls are "
         "done, at most MS milliseconds.",
         is_tested});
  } else {
    finding.fixes.push_back(
        {"Run it under `forksight run --cure=quiesce-libc=MS -- ...`: a fork then waits until such calls of other "
         "threads are done, at most MS milliseconds. It cures calls that end by themselves.",
         is_tested});
  }
}

}  // namespace forksight::libc_calls
