// A mutex that another thread held at the fork stays locked in the child for ever: its owner is not there. A robust one
// does not tell, since in the parent its owner lives; a priority-inheriting one makes libc abort the child, because the
// kernel does not know the owner's tid in this process.
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
    return "It is a priority-inheriting mutex: the kernel is asked to lend to its owner, does not know that thread "
           "here, and libc aborts.";
  }
  if (lock.robust) return "That it is robust does not help: its owner did not die, it lives on in the parent.";
  return {};
}

// What a child handler may do: kinds that compare the owner refuse to be unlocked under the child's new tid.
const char* reset_of(const model::Lock& lock) {
  const bool checks_owner = lock.robust || lock.priority_inherit || lock.type == model::MutexType::kRecursive ||
                            lock.type == model::MutexType::kErrorcheck;
  return checks_owner ? "re-initialise it (this kind refuses to be unlocked there)" : "unlock it";
}

// The parent, too, waits for a mutex whose owner ended: the futex word is the mutex's first.
void find_in_parents(const Evidence& evidence, std::vector<Finding>& findings) {
  const model::Model& model = evidence.model();
  std::set<std::pair<model::ProcessId, std::uint64_t>> said;
  for (const model::Fork& fork : model.forks) {
    const model::Process& parent = evidence.process(fork.process);
    if (!is_proven_dead(parent)) continue;
    for (const model::Held& held : fork.held) {
      const locks::Orphan orphan{held, model.locks[held.lock], model.threads[held.holder]};
      const bool is_owned =
          orphan.lock.kind == model::LockKind::kMutex || orphan.lock.kind == model::LockKind::kRwlockWrite;
      if (!orphan.holder.has_ended || !is_owned) continue;
      const auto wait = std::ranges::find_if(parent.waits, [&](const model::Wait& one) {
        return one.kind == model::WaitKind::kFutex && one.object == orphan.lock.address;
      });
      if (wait == parent.waits.end() || !said.emplace(fork.process, orphan.lock.address).second) continue;
      const bool is_mutex = orphan.lock.kind == model::LockKind::kMutex;
      Finding finding =
          Evidence::begin_finding(is_mutex ? "orphaned-mutex" : "orphaned-rwlock", fork.process, *wait);
      finding.harm = is_beyond_signals(parent) ? Certainty::kProven : Certainty::kLikely;
      finding.cause = Certainty::kProven;
      finding.outcome = is_beyond_signals(parent) ? Outcome::kHang : Outcome::kMayHang;
      finding.culprit = locks::describe_lock(evidence, orphan);
      const std::string taken = words::at(" at ", held.acquired_at);
      finding.summary =
          fmt::format("{} {} locking {}: {} took it{} and ended without releasing it", evidence.name(fork.process),
                      hangs(parent), words::lock(orphan.lock), words::thread(orphan.holder), taken);
      add_sentence(finding, fmt::format("Thread {} of {} waits for {}.", wait->tid, evidence.name(fork.process),
                                        words::lock(orphan.lock)));
      add_sentence(finding, describe_liveness(parent));
      add_sentence(finding, fmt::format("{} took it{} and ended with it held; nobody can release it any more.",
                                        words::thread(orphan.holder), taken));
      add_sentence(finding, describe_end(parent));
      locks::add_fixes(parent, {}, orphan, "", finding);
      findings.push_back(std::move(finding));
    }
  }
}

}  // namespace

void orphaned_mutex(const Evidence& evidence, std::vector<Finding>& findings) {
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
}

}  // namespace forksight::rules
