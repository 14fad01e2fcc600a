// multiprocessing.Queue sends from a background thread. This thread is called the feeder, and the first put() starts
// it. A child of a plain os.fork() has a copy of the queue. This copy counts on a feeder that does not exist in the
// child. So the messages that the child puts into the queue stay in the buffer of the queue. The finding is only
// likely, because it is not known whether the child put something before it fell asleep.
// A queue of forksight itself (ipc/, feed::thread) has a feeder, too. In the child, the handle of such a queue refuses
// to work. But before the handle can refuse, it must take the lock of the queue's list. If a thread of the parent held
// this lock at the fork, the shim records the touch of the lock.
#include <fmt/core.h>

#include <map>
#include <set>
#include <vector>

#include "diagnose/locks.hpp"
#include "diagnose/python.hpp"
#include "diagnose/python_waits.hpp"
#include "diagnose/queues.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

// The processes that wait for another one, by the process that they wait for.
using Waiting = std::multimap<model::ProcessId, model::ProcessId>;

Waiting find_waiting(const model::Model& model) {
  Waiting waiting;
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    if (model.processes[id].waits_for) waiting.emplace(*model.processes[id].waits_for, id);
  }
  return waiting;
}

// Adds victims to the finding: the processes that are proven dead and wait for `child`, directly or through others.
// `child` may wait for these processes, too.
void add_waiting(const model::Model& model, const Waiting& waiting, model::ProcessId child, Finding& finding) {
  std::set<model::ProcessId> reached{child};
  for (std::vector<model::ProcessId> next{child}; !next.empty();) {
    const auto [begin, end] = waiting.equal_range(next.back());
    next.pop_back();
    for (auto entry = begin; entry != end; ++entry) {
      if (reached.insert(entry->second).second) next.push_back(entry->second);
    }
  }
  reached.erase(child);
  for (const model::ProcessId id : reached) {
    const model::Process& process = model.processes[id];
    // attach_victims() adds the processes whose state is "victim", for every rule.
    if (is_proven_dead(process)) finding.victims.push_back({process.pid, process.waits_via});
  }
}

Finding describe(const Evidence& evidence, const Waiting& waiting, const model::Fork& fork, const python::Wait& wait) {
  const model::ProcessId child = *fork.child;
  const model::Process& process = evidence.process(child);
  const std::int32_t parent = evidence.process(fork.process).pid;
  Finding finding = evidence.begin_finding("lost-feeder-thread", fork);
  finding.harm = Certainty::kLikely;
  finding.cause = Certainty::kLikely;
  finding.outcome = Outcome::kHang;
  if (has_way_out(process)) set_may_be_intended(finding);
  finding.culprit.kind = CulpritKind::kThread;
  finding.culprit.name = "the feeder thread of a multiprocessing.Queue";
  finding.culprit.holder = evidence.holder(*wait.partner);
  finding.culprit.holder->start_routine = "_feed";
  finding.culprit.stack = *wait.partner_at_fork;
  finding.culprit.is_at_fork = true;
  const std::string called = python::operation(finding.stack);
  const std::string forked = words::at(" at ", fork.stack);
  finding.summary = fmt::format(
      "{} {}{}{}: the feeder thread of a multiprocessing.Queue, thread {}, was left behind when process {} "
      "forked{}. What the child puts stays in the child's buffer",
      python::process(evidence, child), hangs(process), words::at(" at ", finding.stack),
      called.empty() ? called : " in " + called, wait.partner->tid, parent, forked);
  add_sentence(finding, evidence.describe_liveness(process));
  add_sentence(finding,
               fmt::format("A multiprocessing.Queue sends from a thread of its own. Process {} had one, thread {}, "
                           "at its fork{}; the child has the queue, and not the thread.",
                           parent, wait.partner->tid, forked));
  add_sentence(finding,
               "put() in the child starts no other feeder thread, because the copied queue still records one. So what "
               "the child puts stays in the child's buffer, and nobody answers it.");
  add_sentence(finding, "forksight did not see whether the child put something before it fell asleep.");
  finding.fixes.push_back({"Start the child with multiprocessing.Process: then the queue gets a fresh feeder.", true});
  finding.fixes.push_back(
      {"Or let the child make queues of its own, or use multiprocessing.SimpleQueue, which has no feeder."});
  add_waiting(evidence.model(), waiting, child, finding);
  return finding;
}

Finding describe(const Evidence& evidence, const model::Touch& touch, const locks::Orphan& orphan, const CallEnd& end,
                 const queues::Feeder& feeder) {
  Finding finding = evidence.begin_finding("lost-feeder-thread", touch);
  finding.harm = end.harm;
  finding.cause = evidence.find_cause(touch);
  finding.outcome = end.outcome;
  finding.culprit = locks::describe_lock(evidence, orphan);
  finding.culprit.name = fmt::format("the list of queue {}", feeder.queue);
  finding.summary =
      fmt::format("{}: it guards the list of queue {}, whose feeder, thread {}, is not in the child either; {}",
                  locks::head(evidence, touch, orphan.lock, end, "locking"), feeder.queue, feeder.thread->tid,
                  locks::cause(evidence, touch, orphan));
  locks::tell(evidence, touch, orphan, end, "locking", {}, finding);
  add_sentence(finding,
               fmt::format("The lock guards the list of queue {} (forksight::ipc, feed::thread). Only thread {} \"{}\" "
                           "of process {} sends what is on the list: the child has a copy of the list, and no feeder.",
                           feeder.queue, feeder.thread->tid, feeder.thread->name,
                           evidence.process(evidence.fork(touch).process).pid));
  finding.fixes.push_back(
      {"Create the queue with options::atfork_handlers: fork() then waits for the list, and the child is told that the "
       "handle is its parent's.",
       true});
  finding.fixes.push_back(
      {"Or use feed::direct, which has neither a list nor a lock; and call reattach_after_fork() in the child, "
       "whatever kind of queue it is."});
  return finding;
}

}  // namespace

void lost_feeder_thread(const Evidence& evidence, FindingList& findings) {
  const Waiting waiting = find_waiting(evidence.model());
  for (const model::Fork& fork : evidence.model().forks) {
    if (evidence.find_untouched_child(fork) == nullptr) continue;
    const auto wait = python::find_wait(evidence, fork);
    if (wait && wait->need == python::Need::kFeeder) findings.push_back(describe(evidence, waiting, fork, *wait));
  }
  for (const model::Touch& touch : evidence.model().touches) {
    const auto orphan = locks::find_any_orphan(evidence, touch);
    const auto feeder = orphan ? queues::find_feeder(evidence, touch) : std::nullopt;
    const auto end = feeder ? locks::find_end(evidence, touch) : std::nullopt;
    if (end) findings.push_back(describe(evidence, touch, *orphan, *end, *feeder));
  }
}

}  // namespace forksight::rules
