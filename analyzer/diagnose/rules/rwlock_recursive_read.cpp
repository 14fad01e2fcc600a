// If a rwlock prefers writers, no reader passes a waiting writer, not even a thread that already holds the lock for
// reading. Such a thread waits for the writer. The writer waits until the thread releases the lock. A rwlock does not
// record its readers. So the rule cannot know whether the thread is already a reader, and says that this cause is
// `possible`.
#include <fmt/core.h>

#include "diagnose/rules.hpp"
#include "diagnose/rwlock_waits.hpp"
#include "diagnose/wait_cycles.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

void rwlock_recursive_read(const Evidence& evidence, FindingList& findings) {
  cycles::OtherFindings others(evidence);
  const rwlocks::WaitingReaders readers(evidence.model());
  for (const cycles::Cycle& cycle : evidence.cycles()) {
    if (cycle.size() != 1 || !cycles::has_via(cycle, "rwlock") || others.explain(cycle, findings)) continue;
    const model::Wait& writer = *cycle.front().wait;
    if (writer.use != model::FutexUse::kRwlockWrite || writer.owner != 0 || writer.readers == 0) continue;
    const model::ProcessId id = cycle.front().process;
    const model::Process& process = evidence.process(id);
    const model::Wait* const reader = readers.find_behind(id, writer);
    if (reader == nullptr || !writer.stack.known()) continue;
    Finding finding = Evidence::begin_finding("rwlock-recursive-read", id, *reader);
    cycles::set_certainty(evidence, cycle, finding);
    finding.cause = Certainty::kPossible;
    const std::string name = cycles::object(writer);
    const std::string first = fmt::format("thread {}{}", reader->tid, words::name_in_quotes(reader->name));
    const std::string second = fmt::format("thread {}{}", writer.tid, words::name_in_quotes(writer.name));
    finding.summary = fmt::format(
        "{} {} locking {} for reading{}: {} possibly reads already, and waits behind {}, which waits to write",
        evidence.name(id), hangs(process), name, words::at(" at ", reader->stack), first, second);
    finding.culprit = cycles::culprit_lock(writer);
    add_sentence(finding, fmt::format("Thread {} waits to lock {} for reading{}.", reader->tid, name,
                                      words::at(" at ", reader->stack)));
    add_sentence(
        finding,
        fmt::format("This lock prefers writers, and {} waits to lock it for writing{}, so new readers must wait.",
                    second, words::at(" at ", writer.stack)));
    add_sentence(finding, fmt::format("The writer waits until {} given back.",
                                      words::count(writer.readers, "lock for reading is", "locks for reading are")));
    add_sentence(finding, evidence.describe_liveness(process));
    add_sentence(finding,
                 fmt::format("A rwlock does not record who its readers are. If {} is one of them, it waits "
                             "for itself, by way of the writer. Otherwise another reader does not unlock the lock.",
                             first));
    finding.fixes.push_back({fmt::format(
        "Lock {} for reading only once: move the code that needs the lock into a function that does not lock it.",
        name)});
    finding.fixes.push_back(
        {"A lock that prefers readers (the default, PTHREAD_RWLOCK_PREFER_READER_NP) lets a reader read again. "
         "Its writers may wait long."});
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
