// The forking thread holds a lock across its own fork. Some kinds of lock compare the caller with the owner: recursive,
// error-checking, robust and priority-inheriting mutexes, and a rwlock that is held for writing. Such a lock records
// the tid of the parent's thread. The child's thread has another tid, so the lock refuses its unlock. If the child then
// locks the lock again, it waits for an unlock that never comes. A normal mutex compares nothing, so the child can
// unlock it. The shim records no touch of a normal mutex.
#include <fmt/core.h>

#include <map>
#include <string>
#include <tuple>

#include "diagnose/locks.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

using model::Touch;
using model::TouchAction;
using model::TouchKind;

// If a process touches one lock of one fork several times, this is one finding.
using LockKey = std::tuple<model::ProcessId, model::ForkId, std::size_t>;

LockKey key_of(const Touch& touch) { return {touch.process, touch.fork, touch.held.value_or(0)}; }

bool is_refused_unlock(const Touch& touch) {
  return touch.kind == TouchKind::kUnlockRefused && touch.action == TouchAction::kNone;
}

std::optional<CallEnd> find_end(const Evidence& evidence, const Touch& touch, const model::Lock& lock) {
  if (is_refused_unlock(touch)) return CallEnd{Certainty::kProven, Outcome::kError};
  auto end = locks::find_end(evidence, touch);
  // libc aborts, because the kernel does not know the owner's tid in this process. But if the mutex is robust, libc
  // waits.
  if (end && end->outcome == Outcome::kHang && lock.priority_inherit && !lock.robust) end->outcome = Outcome::kError;
  return end;
}

std::string summarise(const Evidence& evidence, const Touch& touch, const locks::Orphan& own, const CallEnd& end) {
  const std::string taken = words::place(own.held.acquired_at);
  const std::string child = evidence.name(touch.process);
  const std::string cause = fmt::format("the forking thread {} it across fork(){}",
                                        taken.empty() ? "held" : fmt::format("took it at {} and held", taken),
                                        words::at(" at ", evidence.fork(touch).stack));
  if (touch.action == TouchAction::kGiven) {
    const bool is_unlock = touch.kind == TouchKind::kUnlockRefused;
    return fmt::format("{} would have failed {} {}{}; cured by self-held: {}", child,
                       is_unlock ? "unlocking" : "locking", words::lock(own.lock), words::at(" at ", touch.stack),
                       cause);
  }
  if (is_refused_unlock(touch)) {
    return fmt::format("{} cannot unlock {}{}: {}, and its owner is the parent's thread {}", child,
                       words::lock(own.lock), words::at(" at ", touch.stack), cause, own.holder.tid);
  }
  return fmt::format("{}: {}", locks::head(evidence, touch, own.lock, end, "locking"), cause);
}

void tell_touch(const Evidence& evidence, const Touch& touch, const locks::Orphan& own, const Touch* refused,
                const CallEnd& end, Finding& finding) {
  const std::string name = words::lock(own.lock);
  const std::string who = fmt::format("Thread {} of {}", touch.tid, evidence.name(touch.process));
  std::string where = words::place_with_function(touch.stack);
  if (!where.empty()) where = " at " + where;
  if (is_refused_unlock(touch)) {
    add_sentence(finding, fmt::format("{} tried to unlock {}{}. The lock refused this (EPERM) and stays locked.", who,
                                      name, where));
    return;
  }
  if (touch.action == TouchAction::kGiven) {
    add_sentence(finding, fmt::format("{} {} {}{}, still locked from before the fork.", who,
                                      touch.kind == TouchKind::kUnlockRefused ? "unlocked" : "locked", name, where));
    return;
  }
  if (refused != nullptr) {
    add_sentence(finding, fmt::format("{} had tried to unlock {}{}, which was refused (EPERM) and left it locked.", who,
                                      name, words::at(" at ", refused->stack)));
  }
  add_sentence(finding, fmt::format("{} locks {}{}, which is still locked from before the fork.", who, name, where));
  if (end.outcome == Outcome::kHang) add_sentence(finding, evidence.describe_liveness(evidence.process(touch.process)));
}

void tell(const Evidence& evidence, const Touch& touch, const locks::Orphan& own, Finding& finding) {
  const model::Fork& fork = evidence.fork(touch);
  const std::string taken = words::at(" at ", own.held.acquired_at);
  const std::string parent = words::parent(evidence.process(fork.process));
  const std::string forked = words::at(" at ", fork.stack);
  add_sentence(finding, fork.child == touch.process
                            ? fmt::format("The forking thread, {} of {}, had taken it{} and held it across fork(){}.",
                                          words::thread(own.holder), parent, taken, forked)
                            : fmt::format("In {}, {} had taken it{} and held it across fork(){}: this process came "
                                          "from that one by several forks.",
                                          parent, words::thread(own.holder), taken, forked));
  add_sentence(finding, fmt::format("{} {} records its owner by thread id, here {}. In the child that thread has "
                                    "another id, so the lock refuses the thread's unlock.",
                                    words::lock_kind(own.lock).starts_with('e') ? "An" : "A",
                                    words::lock_kind(own.lock), own.holder.tid));
  if (touch.action == TouchAction::kRecovered) {
    add_sentence(
        finding,
        "forksight re-initialised the lock (--on-orphan=recover); the data that it protects is as it was at the fork.");
  }
  if (touch.action == TouchAction::kGiven) {
    add_sentence(finding,
                 "forksight wrote the child's thread id into the lock at the fork (self-held): it is held by the same "
                 "thread as before, and the data that it protects is as that thread left it.");
  }
  add_sentence(finding, describe_end(evidence.process(touch.process)));
}

bool is_plain(const model::Lock& lock) {
  return lock.kind == model::LockKind::kMutex && !lock.robust && !lock.priority_inherit && !lock.process_shared;
}

// True if the hazard suite has a program for this kind of lock.
bool is_tested_kind(const model::Lock& lock) {
  if (lock.process_shared || (lock.robust && lock.priority_inherit)) return false;
  if (lock.kind == model::LockKind::kRwlockWrite) return true;
  if (lock.kind != model::LockKind::kMutex) return false;
  return lock.robust || lock.priority_inherit || lock.type == model::MutexType::kErrorcheck ||
         lock.type == model::MutexType::kRecursive;
}

void add_fixes(const Touch& touch, const locks::Orphan& own, bool was_refused, Finding& finding) {
  const char* const option = "forksight run --cure=self-held -- ...";
  const bool is_tested_recursive = is_plain(own.lock) && own.lock.type == model::MutexType::kRecursive;
  if (touch.action == TouchAction::kGiven) {
    finding.fixes.push_back(
        {fmt::format("Keep running under `{}`: it cures this at each fork.", option), is_tested_kind(own.lock)});
  } else {
    finding.fixes.push_back({fmt::format("Run it under `{}`: the child's thread becomes the lock's owner.", option),
                             is_tested_kind(own.lock)});
  }
  finding.fixes.push_back(
      {fmt::format("Re-initialise {} in the child, in a pthread_atfork() child handler: an unlock there is refused.",
                   words::lock(own.lock)),
       is_tested_recursive});
  finding.fixes.push_back({"Release the lock before fork()."});
  if (own.lock.kind == model::LockKind::kMutex && was_refused) {
    finding.fixes.push_back(
        {"Make it a normal mutex (PTHREAD_MUTEX_NORMAL, std::mutex) if it need not be recursive: those can be "
         "unlocked in the child.",
         is_tested_recursive});
  } else if (own.lock.kind == model::LockKind::kMutex) {
    finding.fixes.push_back(
        {"Make it a normal mutex (PTHREAD_MUTEX_NORMAL, std::mutex) if it need not be recursive, and unlock it in the "
         "child before it is locked there again: a normal mutex lets the child do so."});
  }
}

}  // namespace

void self_held_lock(const Evidence& evidence, FindingList& findings) {
  // If an unlock is refused, and a later call on the same lock hangs, both have one cause. One finding about the later
  // touch reports both.
  std::map<LockKey, const Touch*> refused;
  std::map<LockKey, const Touch*> last;
  for (const Touch& touch : evidence.model().touches) {
    const auto own = locks::find_own(evidence, touch);
    if (!own || !find_end(evidence, touch, own->lock)) continue;
    if (is_refused_unlock(touch)) refused.try_emplace(key_of(touch), &touch);
    const auto [at, is_first] = last.try_emplace(key_of(touch), &touch);
    if (!is_first && is_refused_unlock(*at->second)) at->second = &touch;
  }
  for (const auto& [key, about] : last) {
    const Touch& touch = *about;
    const auto own = locks::find_own(evidence, touch);
    const auto end = find_end(evidence, touch, own->lock);
    const auto before = refused.find(key);
    Finding finding = evidence.begin_finding("self-held-lock", touch);
    finding.harm = end->harm;
    finding.cause = evidence.find_cause(touch);
    finding.outcome = end->outcome;
    finding.culprit = locks::describe_lock(evidence, *own);
    finding.summary = summarise(evidence, touch, *own, *end);
    tell_touch(evidence, touch, *own, before == refused.end() ? nullptr : before->second, *end, finding);
    tell(evidence, touch, *own, finding);
    add_fixes(touch, *own, is_refused_unlock(touch) || before != refused.end(), finding);
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
