// Threads took the same locks in opposite orders, at different times (--lock-order). Nothing hangs. The finding reports
// that a hang is possible, and names the places to change. If the threads do hang, the rule lock-cycle reports them.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <unordered_set>

#include "diagnose/evidence.hpp"
#include "diagnose/lock_orders.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

std::string held_name(const model::Model& model, const model::LockOrder& order) {
  return words::lock(model.locks[order.held]);
}

std::string taken_name(const model::Model& model, const model::LockOrder& order) {
  return words::lock(model.locks[order.taken]);
}

std::string mode(const model::OrderedLock& lock) { return lock.shared ? " to read" : ""; }

std::string times(std::uint64_t count) { return count > 1 ? fmt::format(" ({} times)", count) : std::string(); }

// Returns the processes that hang already, because threads took locks in opposite orders.
std::unordered_set<model::ProcessId> find_hanging(const std::vector<Finding>& findings) {
  std::unordered_set<model::ProcessId> hanging;
  for (const Finding& finding : findings) {
    if (finding.rule == "lock-cycle") hanging.insert(finding.processes.begin(), finding.processes.end());
  }
  return hanging;
}

Culprit describe_first(const Evidence& evidence, const model::LockOrder& order) {
  const model::Lock& lock = evidence.model().locks[order.held];
  Culprit culprit;
  culprit.kind = CulpritKind::kLock;
  culprit.name = lock.name.empty() ? words::lock(lock) : fmt::format("{} ({})", lock.name, words::lock_kind(lock));
  culprit.library = lock.module;
  culprit.address = lock.address;
  culprit.holder = evidence.holder(evidence.model().threads[order.thread]);
  culprit.stack = order.held_at;
  return culprit;
}

std::string name_locks(const model::Model& model, const orders::Ring& ring) {
  std::vector<std::string> names;
  for (const orders::Link& link : ring) {
    if (!link.is_queued) names.push_back(held_name(model, *link.order));
  }
  return fmt::format("{} and {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

// Returns a part of the summary, such as "thread 12 takes cache_mu, then queue_mu at app.c:31".
std::string describe(const model::Model& model, const orders::Link& link) {
  const model::LockOrder& order = *link.order;
  const std::string thread = words::thread(model.threads[order.thread]);
  if (link.is_queued)
    return fmt::format("{} takes {} to write{}", thread, taken_name(model, order), words::at(" at ", order.taken_at));
  return fmt::format("{} takes {}, then {}{}", thread, held_name(model, order), taken_name(model, order),
                     words::at(" at ", order.taken_at));
}

void tell(const model::Model& model, const orders::Ring& ring, Finding& finding) {
  for (const orders::Link& link : ring) {
    const model::LockOrder& order = *link.order;
    const std::string thread = words::thread(model.threads[order.thread]);
    if (link.is_queued) {
      add_sentence(finding, fmt::format("{} took {} to write{}{}. This rwlock prefers writers: while one waits for its "
                                        "readers, new readers wait behind it.",
                                        thread, taken_name(model, order), words::at(" at ", order.taken_at),
                                        times(order.times)));
      continue;
    }
    add_sentence(finding, fmt::format("{} took {}{}{} and, with it held, {}{}{}{}.", thread, held_name(model, order),
                                      mode(order.held_as), words::at(" at ", order.held_at), taken_name(model, order),
                                      mode(order.taken_as), words::at(" at ", order.taken_at), times(order.times)));
  }
  add_sentence(finding,
               "In this run they did not block each other. If each of them takes its first lock before any takes its "
               "second, all of them wait for ever.");
  add_sentence(
      finding,
      "No other lock that two of them hold keeps them apart. None of them was created after another one had done its "
      "part or had been joined. forksight cannot see whether a barrier, a queue or a flag keeps them apart.");
}

}  // namespace

void lock_order_inversion(const Evidence& evidence, FindingList& findings) {
  const model::Model& model = evidence.model();
  const std::unordered_set<model::ProcessId> hanging = find_hanging(findings);
  for (const orders::Ring& ring : evidence.lock_rings().found) {
    const model::LockOrder& first = *ring.front().order;
    const model::ProcessId process = model.lives[first.life].process;
    if (hanging.contains(process)) continue;
    Finding finding;
    finding.rule = "lock-order-inversion";
    finding.harm = Certainty::kPossible;
    finding.cause = Certainty::kProven;
    finding.outcome = Outcome::kMayHang;
    finding.process = process;
    finding.processes = {process};
    finding.tid = model.threads[first.thread].tid;
    finding.thread_name = model.threads[first.thread].name;
    finding.stack = first.taken_at;
    finding.culprit = describe_first(evidence, first);
    std::string ways;
    for (const orders::Link& link : ring) ways += fmt::format("{}{}", ways.empty() ? "" : "; ", describe(model, link));
    finding.summary = fmt::format("{} may hang between {}: {}", evidence.name(process), name_locks(model, ring), ways);
    tell(model, ring, finding);
    finding.fixes.push_back(
        {"Take these locks in one and the same order everywhere, or all at once: std::scoped_lock(a, b).", true});
    finding.fixes.push_back(
        {"Give the first lock back before the second one is taken; or try the second "
         "(pthread_mutex_trylock()) and, if that fails, give the first one back."});
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
