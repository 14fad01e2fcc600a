// The forking thread holds a lock across its own fork. Kinds that compare the caller with the owner (recursive,
// error-checking, robust, priority-inheriting mutexes; a rwlock's writer) know the owner by the tid of the parent's
// thread, and the child's thread has another: its unlock is refused, its next lock waits for itself. Normal mutexes are
// fine, and are never touched in this sense.
#include <fmt/core.h>

#include <string>

#include "diagnose/locks.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

std::string summarise(const Evidence& evidence, const model::Touch& touch, const locks::Orphan& own,
                      const locks::End& end) {
  const std::string taken = words::place(own.held.acquired_at);
  const std::string cause = fmt::format("the forking thread {} it across fork(){}",
                                        taken.empty() ? "held" : fmt::format("took it at {} and held", taken),
                                        words::at(" at ", evidence.fork(touch).stack));
  if (touch.kind == model::TouchKind::kUnlockRefused) {
    return fmt::format("{} cannot unlock {}{}: {}, and its owner is the parent's thread {}",
                       evidence.name(touch.process), words::lock(own.lock), words::at(" at ", touch.stack), cause,
                       own.holder.tid);
  }
  return fmt::format("{}: {}", locks::head(evidence, touch, own.lock, end, "locking"), cause);
}

}  // namespace

void self_held_lock(const Evidence& evidence, std::vector<Finding>& findings) {
  for (const model::Touch& touch : evidence.model().touches) {
    const auto own = locks::find_own(evidence.model(), touch);
    if (!own) continue;
    const bool is_refused = touch.kind == model::TouchKind::kUnlockRefused;
    const auto end =
        is_refused ? std::optional(locks::End{Certainty::kCertain, Outcome::kError}) : locks::find_end(evidence, touch);
    if (!end) continue;
    const model::Process& child = evidence.process(touch.process);
    const model::Fork& fork = evidence.fork(touch);
    const std::string name = words::lock(own->lock);
    Finding finding = evidence.begin_finding("self-held-lock", touch);
    finding.certainty = end->certainty;
    finding.outcome = end->outcome;
    finding.culprit = locks::describe_lock(evidence, *own);
    finding.summary = summarise(evidence, touch, *own, *end);
    const std::string where = words::long_place(touch.stack);
    if (is_refused) {
      add_sentence(finding,
                   fmt::format("Thread {} of {} unlocked {}{}{}; the lock did not accept it and stays locked.",
                               touch.tid, evidence.name(touch.process), name, where.empty() ? "" : " at ", where));
    } else {
      add_sentence(finding,
                   fmt::format("Thread {} of {} locks {}{}{}, which is still locked from before the fork.", touch.tid,
                               evidence.name(touch.process), name, where.empty() ? "" : " at ", where));
      if (end->outcome == Outcome::kHang) add_sentence(finding, describe_liveness(child));
    }
    add_sentence(finding,
                 fmt::format("The forking thread, {} of process {}, had taken it{} and held it across fork(){}.",
                             words::thread(own->holder), evidence.process(fork.process).pid,
                             words::at(" at ", own->held.acquired_at), words::at(" at ", fork.stack)));
    add_sentence(
        finding,
        fmt::format(
            "A {} remembers its owner by thread id {}; in the child the same thread has another id, so the lock "
            "takes it for a stranger.",
            words::lock_kind(own->lock), own->holder.tid));
    if (end->outcome == Outcome::kCured) {
      add_sentence(
          finding,
          "forksight re-initialised the lock (--on-orphan=recover); what it protects is as it was at the fork.");
    }
    add_sentence(finding, describe_end(child));
    finding.fixes.push_back({fmt::format(
        "Re-initialise {} in the child, in a pthread_atfork() child handler: an unlock there is refused.", name)});
    finding.fixes.push_back({"Release the lock before fork()."});
    if (own->lock.kind == model::LockKind::kMutex) {
      finding.fixes.push_back(
          {"Make it a normal mutex (PTHREAD_MUTEX_NORMAL, std::mutex) if it need not be recursive: those can be "
           "unlocked "
           "in the child."});
    }
    if (touch.action == model::TouchAction::kNone && !is_refused) {
      finding.fixes.push_back(
          {"To keep a job running for now: `forksight run --on-orphan=recover -- ...` re-initialises the lock when the "
           "child needs it."});
    }
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
