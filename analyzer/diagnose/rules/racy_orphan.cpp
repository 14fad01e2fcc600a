// A child took a lock that other threads of its parent hold now and then (--predict). The lock was free at this fork.
// If a fork comes at another moment, the child gets an orphaned lock. diagnose/odds.hpp estimates how often that
// happens, as a range.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "diagnose/evidence.hpp"
#include "diagnose/odds.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

// Returns text such as "31 %", "3.1 %" or "0.0042 %".
std::string percent(double share) {
  const double value = share * 100;
  return value >= 10 ? fmt::format("{:.0f} %", value) : fmt::format("{:.2g} %", value);
}

// Widens the range by 2 % at each end. This makes up for the rounding.
std::string percents(const Chance& range) {
  const std::string high = percent(std::min(1.0, range.high * 1.02));
  if (range.low == 0) return "at most " + high;
  return fmt::format("{} to {}", percent(range.low * 0.98), high);
}

// Describes the measurement from which the range was computed.
std::string measured(const odds::Odds& odds) {
  if (odds.is_by_forks)
    return fmt::format("{} of {} found it taken", odds.taken, words::count(odds.forks, "fork", "forks"));
  return fmt::format("when it forks, other threads hold it {} of the time", percent(odds.share));
}

std::string reason(const odds::Odds& odds) {
  const std::string seen = fmt::format("Of the {} seen, {} found it taken", words::count(odds.forks, "fork", "forks"),
                                       odds.taken == 0 ? "none" : std::to_string(odds.taken));
  if (odds.is_by_forks) {
    return fmt::format(
        "{}, although those threads hold it {} of the time: the moment at which the program forks depends on what they "
        "do. Judged by these forks alone, {} hang.",
        seen, percent(odds.share), percents(odds.range));
  }
  if (odds.share == 0) {
    return fmt::format(
        "{}; nobody took it around these forks, but threads did before. These forks are too few to show that it is "
        "never taken: {} hang.",
        seen, percents(odds.range));
  }
  return fmt::format("{}. If the moment of a fork does not depend on what those threads do, {} hang.", seen,
                     percents(odds.range));
}

// Returns the pid of the parent and the address of the lock for each lock that a finding reports for a child. Such a
// finding says more than a probability.
std::set<std::pair<std::int32_t, std::uint64_t>> find_reported_locks(const std::vector<Finding>& findings) {
  std::set<std::pair<std::int32_t, std::uint64_t>> reported;
  for (const Finding& finding : findings) {
    if (finding.culprit.kind == CulpritKind::kLock && finding.fork)
      reported.emplace(finding.fork->pid, finding.culprit.address);
  }
  return reported;
}

}  // namespace

void racy_orphan(const Evidence& evidence, FindingList& findings) {
  const model::Model& model = evidence.model();
  const odds::Table table(model);
  const auto reported = find_reported_locks(findings);
  for (const model::RacyTouch& touch : model.racy_touches) {
    const model::Fork& fork = model.forks[touch.fork];
    const model::Process& parent = evidence.process(fork.process);
    const model::Lock& lock = model.locks[touch.lock];
    const model::Thread& holder = model.threads[touch.holder];
    // In a Python process, the forking thread holds the GIL. Other threads may need the GIL to take the lock. Then no
    // thread holds the lock at a fork, but the measurement does not show this.
    if (words::is_python(parent) || fork.python || reported.contains({parent.pid, lock.address})) continue;
    const odds::Odds& odds = table.of(touch);
    if (odds.is_over) continue;
    Finding finding;
    finding.rule = "racy-orphan";
    finding.harm = Certainty::kPossible;
    finding.cause = Certainty::kProven;
    finding.outcome = Outcome::kMayHang;
    finding.odds = odds.range;
    finding.process = touch.process;
    finding.processes = {touch.process};
    finding.tid = touch.tid;
    finding.stack = touch.stack;
    finding.fork = evidence.fork_site(fork);
    finding.culprit.kind = CulpritKind::kLock;
    finding.culprit.name =
        lock.name.empty() ? words::lock(lock) : fmt::format("{} ({})", lock.name, words::lock_kind(lock));
    finding.culprit.library = lock.module;
    finding.culprit.address = lock.address;
    finding.culprit.holder = evidence.holder(holder);
    finding.culprit.stack = touch.held_at;
    const std::string name = words::lock(lock);
    finding.summary =
        fmt::format("{} may hang locking {}{}: {}, so {} of such forks hang", evidence.name(touch.process), name,
                    words::at(" at ", touch.stack), measured(odds), percents(odds.range));
    add_sentence(finding, fmt::format("{} took {}{}. At its fork{} the lock was free.", evidence.name(touch.process),
                                      name, words::at(" at ", touch.stack), words::at(" at ", fork.stack)));
    add_sentence(finding, fmt::format("In {} it is also taken by {}{}{}.", words::parent(parent), words::thread(holder),
                                      touch.threads > 1
                                          ? fmt::format(" and {}",
                                                        words::count(touch.threads - 1, "thread more", "threads more"))
                                          : "",
                                      words::at(", at ", touch.held_at)));
    add_sentence(
        finding,
        fmt::format(
            "They took it {} and held it {} of the {} between the start of that process' second thread and this fork.",
            words::count(touch.times, "time", "times"), percent(touch.share),
            words::duration(touch.window_ns / words::kNsPerMs)));
    add_sentence(finding,
                 "A fork at such a moment copies the lock in its locked state, without the thread that would release "
                 "it: then this call never returns.");
    add_sentence(finding, reason(odds));
    finding.fixes.push_back({"Exec right after fork(): then no lock of the parent matters."});
    finding.fixes.push_back({fmt::format("Guard {} with pthread_atfork(): lock it in the prepare handler, and unlock "
                                         "it in the parent handler and in the child handler.",
                                         name),
                             true});
    finding.fixes.push_back(
        {fmt::format("Fork before {} is started, while the process has one thread.", words::thread(holder))});
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
