// A thread waits to write to a rwlock, and the readers that hold the lock will never unlock it. Usually the thread
// itself is one of the readers. A rwlock does not record its readers. If the memory shows no trace of another thread
// (living, ended or lost), it is certain that the writer is itself the reader. Otherwise it is not certain.
#include <fmt/core.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "diagnose/ended_threads.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/rwlock_waits.hpp"
#include "diagnose/wait_cycles.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {
namespace {

// What the rule asks about the threads of the processes. A process may have thousands of waiting writers, so each wait
// is visited only once.
class Threads {
 public:
  explicit Threads(const model::Model& model) : living_(model.processes.size()) {
    for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
      for (const model::Wait& wait : model.processes[id].waits) {
        if (!has_thread_ended(wait)) ++living_[id];
        for (const model::Waker& waker : wait.wakers) {
          if (waker.via == "join") joiners_.try_emplace({id, waker.tid}, &wait);
        }
      }
    }
  }

  // Returns a thread that waits in pthread_join() for the end of thread `tid`; null if there is none. The joining
  // thread unlocks nothing before thread `tid` ends. So if thread `tid` waits for a reader, the joining thread is the
  // first suspect.
  const model::Wait* find_joiner(model::ProcessId id, std::int32_t tid) const {
    const auto found = joiners_.find({id, tid});
    return found == joiners_.end() ? nullptr : found->second;
  }
  bool has_one(model::ProcessId id) const { return living_[id] == 1; }

 private:
  std::vector<std::size_t> living_;                                                  // indexed by process
  std::map<std::pair<model::ProcessId, std::int32_t>, const model::Wait*> joiners_;  // by process and joined thread
};

}  // namespace

void rwlock_upgrade(const Evidence& evidence, FindingList& findings) {
  cycles::OtherFindings others(evidence);
  const rwlocks::WaitingReaders readers(evidence.model());
  const Threads threads(evidence.model());
  for (const cycles::Cycle& cycle : evidence.cycles()) {
    if (cycle.size() != 1 || !cycles::has_via(cycle, "rwlock") || others.explain(cycle, findings)) continue;
    const model::Wait& wait = *cycle.front().wait;
    if (wait.use != model::FutexUse::kRwlockWrite || wait.owner != 0 || wait.readers == 0) continue;
    if (readers.find_behind(cycle.front().process, wait) != nullptr) continue;
    const model::Process& process = evidence.process(cycle.front().process);
    Finding finding = cycles::begin_finding("rwlock-upgrade", evidence, cycle);
    if (!process.never_had_other_threads) finding.cause = Certainty::kPossible;
    const bool is_alone = threads.has_one(cycle.front().process);
    const model::Wait* const joiner = threads.find_joiner(cycle.front().process, wait.tid);
    const std::string name = cycles::object(wait);
    const std::string writer = cycles::thread(evidence, cycle.front(), false);
    finding.summary =
        fmt::format("{} {} locking {} for writing{}: {} {}", evidence.name(finding.process), hangs(process), name,
                    words::at(" at ", wait.stack), joiner == nullptr ? writer : fmt::format("thread {}", joiner->tid),
                    joiner != nullptr ? fmt::format("possibly holds it for reading and waits for {} to end", writer)
                    : process.never_had_other_threads ? "holds it for reading itself"
                    : is_alone ? "possibly holds it for reading itself, or a thread that has ended never unlocked it"
                               : "possibly holds it for reading itself, or another reader does not unlock it");
    finding.culprit = cycles::culprit_lock(evidence, cycle);
    if (joiner != nullptr) {
      finding.culprit.holder->tid = joiner->tid;
      finding.culprit.holder->name = joiner->name;
      finding.culprit.stack = joiner->stack;
      finding.culprit.is_now = joiner->stack.known();
    }
    add_sentence(finding, fmt::format("Thread {} waits to lock {} for writing, and it is locked for reading{}.",
                                      wait.tid, name, wait.readers == 1 ? "" : fmt::format(" {} times", wait.readers)));
    if (joiner != nullptr)
      add_sentence(finding, fmt::format("Thread {} waits{} for the end of thread {}.", joiner->tid,
                                        words::at(" at ", joiner->stack), wait.tid));
    add_sentence(finding, evidence.describe_liveness(process));
    add_sentence(finding,
                 process.never_had_other_threads ? "The process never had another thread. So this thread is the "
                                                   "reader, and waits until it unlocks the rwlock itself."
                 : is_alone
                     ? "A rwlock does not record its readers. The process has no other thread, so the reader is this "
                       "thread, or one that has ended without unlocking."
                     : "A rwlock does not record its readers. The reader may be this thread, another waiting "
                       "thread, or one that has ended without unlocking.");
    add_sentence(
        finding,
        "A lock for reading cannot be turned into one for writing: the writer waits for all readers, itself included.");
    if (joiner != nullptr)
      finding.fixes.push_back(
          {"If the joining thread is the reader: unlock before pthread_join() or std::thread::join()."});
    finding.fixes.push_back(
        {"Unlock first, then lock for writing, and check again what was read: it may have changed in between."});
    finding.fixes.push_back({"Lock for writing from the beginning where a write may follow."});
    if (!process.never_had_other_threads) {
      finding.fixes.push_back(
          {"If the reader has ended: unlock on every way out of a thread (std::shared_lock does)."});
    }
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
