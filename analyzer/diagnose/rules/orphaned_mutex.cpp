// Another thread held a mutex at the fork. In the child the mutex stays locked for ever, because its owner does not
// exist there. A robust mutex reports nothing, because its owner lives on in the parent. If the mutex inherits
// priority, libc aborts the child, because the kernel does not know the owner's tid in the child.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "diagnose/locks.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

std::string nature_of(const model::Lock& lock, Outcome outcome) {
  if (lock.priority_inherit && outcome == Outcome::kError) {
    return "It is a priority-inheriting mutex: libc asks the kernel to lend priority to the owner, the kernel finds no "
           "such thread in this process, and libc aborts.";
  }
  if (lock.robust)
    return "The mutex is robust, but that does not help here: its owner has not ended, but lives on in the parent.";
  return {};
}

// Says what a child handler may do with the mutex. Some kinds of mutex compare the caller's tid with the owner's tid.
// The child cannot unlock such a mutex, because the child's thread has a new tid.
const char* reset_of(const model::Lock& lock) {
  const bool checks_owner = lock.robust || lock.priority_inherit || lock.type == model::MutexType::kRecursive ||
                            lock.type == model::MutexType::kErrorcheck;
  return checks_owner ? "re-initialise it (this kind cannot be unlocked there)" : "unlock it";
}

// Describes a wait that no fork caused: a thread of the waiting process held the lock, and ended without releasing it.
Finding tell_ended_holder(const Evidence& evidence, model::ProcessId id, const model::Wait& wait,
                          const locks::Orphan& orphan) {
  const model::Process& process = evidence.process(id);
  const bool is_mutex = orphan.lock.kind == model::LockKind::kMutex;
  Finding finding = Evidence::begin_finding(is_mutex ? "orphaned-mutex" : "orphaned-rwlock", id, wait);
  // If other threads of the process go on, the wait is still proven to last, because no signal handler ends a wait for
  // a mutex or rwlock.
  const bool is_lasting = no_signal_can_wake(process) || !is_proven_dead(process);
  finding.harm = is_lasting ? Certainty::kProven : Certainty::kLikely;
  finding.cause = Certainty::kProven;
  finding.outcome = is_lasting ? Outcome::kHang : Outcome::kMayHang;
  finding.culprit = locks::describe_lock(evidence, orphan);
  const std::string taken = words::at(" at ", orphan.held.acquired_at);
  finding.summary = fmt::format("{} {} locking {}: {} took it{} and ended without releasing it", evidence.name(id),
                                hangs(process), words::lock(orphan.lock), words::thread(orphan.holder), taken);
  add_sentence(finding,
               fmt::format("Thread {} of {} waits for {}.", wait.tid, evidence.name(id), words::lock(orphan.lock)));
  add_sentence(finding,
               is_proven_dead(process)
                   ? evidence.describe_liveness(process)
                   : "Other threads of the process go on. This kind of mutex can be unlocked by its owner alone.");
  add_sentence(finding, fmt::format("It was taken{} by {}, which ended with it held; nobody can release it any more.",
                                    taken, words::thread(orphan.holder)));
  add_sentence(finding, describe_end(process));
  locks::add_fixes(process, {}, orphan, "", finding);
  return finding;
}

// Finds parents that are proven dead and wait for a mutex or rwlock whose owner ended before the fork. The child may
// wait for its copy of the same lock. For a mutex and for a rwlock, `Wait::object` is the address of the lock.
void find_in_parents(const Evidence& evidence, FindingList& findings) {
  const model::Model& model = evidence.model();
  std::set<std::pair<model::ProcessId, std::uint64_t>> said;
  for (const model::Fork& fork : model.forks) {
    const model::Process& parent = evidence.process(fork.process);
    if (!is_proven_dead(parent)) continue;
    for (const model::Held& held : fork.held) {
      const locks::Orphan orphan{held, model.locks[held.lock], model.threads[held.holder], fork};
      const bool is_owned =
          orphan.lock.kind == model::LockKind::kMutex || orphan.lock.kind == model::LockKind::kRwlockWrite;
      if (!orphan.holder.has_ended || !is_owned) continue;
      const auto wait = std::ranges::find_if(parent.waits, [&](const model::Wait& one) {
        return one.kind == model::WaitKind::kFutex && one.object == orphan.lock.address;
      });
      if (wait == parent.waits.end() || !said.emplace(fork.process, orphan.lock.address).second) continue;
      findings.push_back(tell_ended_holder(evidence, fork.process, *wait, orphan));
    }
  }
}

// True if the thread is inside of libc's own locking functions. Without this check, memory that is no lock may look
// like a lock by accident.
bool is_locking(const model::Stack& stack) {
  return std::ranges::any_of(stack.frames, [](const model::Frame& frame) {
    const std::string_view name = frame.function;
    const bool is_lock = name.find("pthread_mutex_") != name.npos || name.find("pthread_rwlock_") != name.npos;
    return is_lock && frame.module.find("/libc.so.") != std::string::npos;
  });
}

// True if the thread waits for a lock that names a former thread of this process. The kernel gives out thread ids in
// rising order. So if the recorded id is below the pid of this process, it may belong to a thread of the parent. Other
// rules report locks that a thread held at the fork.
// `in_touch`: the threads whose touch of something that was held at a fork has not returned.
bool is_of_own_ended_thread(const Evidence& evidence, model::ProcessId id, const model::Wait& wait,
                            const std::set<std::pair<model::ProcessId, std::int32_t>>& in_touch) {
  const bool is_lock = wait.use == model::FutexUse::kMutex || wait.use == model::FutexUse::kRwlockRead ||
                       wait.use == model::FutexUse::kRwlockWrite;
  const bool has_ended = wait.owner_is_gone && wait.owner > evidence.process(id).pid;
  const bool is_own = is_lock && is_locking(wait.stack) && has_ended && !wait.is_shared;
  return is_own && !in_touch.contains({id, wait.tid});
}

void find_in_waits(const Evidence& evidence, FindingList& findings) {
  static const model::Fork kNoFork;
  const model::Model& model = evidence.model();
  std::set<std::pair<model::ProcessId, std::uint64_t>> said;
  for (const Finding& finding : findings) {
    if (finding.culprit.kind == CulpritKind::kLock) said.emplace(finding.process, finding.culprit.address);
  }
  std::set<std::pair<model::ProcessId, std::int32_t>> in_touch;
  for (const model::Touch& touch : model.touches) {
    if (touch.held && !touch.returned) in_touch.emplace(touch.process, touch.tid);
  }
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    const bool is_dead = is_proven_dead(model.processes[id]);
    for (const model::Wait& wait : model.processes[id].waits) {
      // While other threads of the process go on, one of them may unlock the lock, or cancel the waiting thread.
      if (!is_dead && (!wait.is_stuck || wait.may_be_cancelled)) continue;
      if (!is_of_own_ended_thread(evidence, id, wait, in_touch) || !said.emplace(id, wait.object).second) continue;
      model::Lock lock;
      lock.kind = wait.use == model::FutexUse::kMutex ? model::LockKind::kMutex : model::LockKind::kRwlockWrite;
      lock.address = wait.object;
      lock.type = wait.mutex_type;
      lock.name = wait.object_name;
      lock.module = wait.object_module;
      model::Thread holder;
      holder.process = id;
      holder.tid = wait.owner;
      holder.has_ended = true;
      Finding finding = tell_ended_holder(evidence, id, wait, {model::Held(), lock, holder, kNoFork});
      // When thread ids reach the maximum, they begin at low numbers again. So in a forked process, even an id above
      // the pid may belong to a thread of the parent.
      if (!evidence.forks_that_made(id).empty()) finding.cause = Certainty::kLikely;
      findings.push_back(std::move(finding));
    }
  }
}

}  // namespace

void orphaned_mutex(const Evidence& evidence, FindingList& findings) {
  for (const model::Touch& touch : evidence.model().touches) {
    const auto orphan = locks::find_orphan(evidence, touch);
    if (!orphan || orphan->lock.kind != model::LockKind::kMutex) continue;
    auto end = locks::find_end(evidence, touch);
    if (!end) continue;
    const bool sleeps = is_proven_dead(evidence.process(touch.process));
    if (orphan->lock.priority_inherit && end->outcome == Outcome::kHang && !sleeps) end->outcome = Outcome::kError;
    Finding finding = evidence.begin_finding("orphaned-mutex", touch);
    finding.harm = end->harm;
    finding.cause = evidence.find_cause(touch);
    finding.outcome = end->outcome;
    finding.culprit = locks::describe_lock(evidence, *orphan);
    finding.summary = fmt::format("{}: {}", locks::head(evidence, touch, orphan->lock, *end, "locking"),
                                  locks::cause(evidence, touch, *orphan));
    locks::tell(evidence, touch, *orphan, *end, "locking", nature_of(orphan->lock, end->outcome), finding);
    locks::add_fixes(evidence.process(touch.process), touch, *orphan, reset_of(orphan->lock), finding);
    findings.push_back(std::move(finding));
  }
  find_in_parents(evidence, findings);
  find_in_waits(evidence, findings);
}

}  // namespace forksight::rules
