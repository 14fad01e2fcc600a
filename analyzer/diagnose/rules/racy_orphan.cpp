// A child took a lock that was free at its fork, and that other threads of its parent have now and then (--predict): a
// fork at another moment orphans it. The chance is
//
//   time that the lock was held by threads that lived at the fork, the forking one left out
//   ----------------------------------------------------------------------------------------
//   time from the process' first second thread to the fork
//
// which is the chance of a fork at a random moment of that time: the moment of a fork must not depend on what those
// threads do. Of a rwlock's readers, who may have it together, only the one that had it longest counts.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "diagnose/evidence.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

// "3.1 %", "0.0042 %"
std::string percent(double share) {
  const double value = share * 100;
  return value >= 10 ? fmt::format("{:.0f} %", value) : fmt::format("{:.2g} %", value);
}

std::string odds(double share) {
  const double forks = 1 / share;
  if (forks < 1.5) return "most forks hang";
  return fmt::format("about one fork in {} hangs", forks < 1e15 ? std::llround(forks) : 1'000'000'000'000'000LL);
}

// A child of the same parent was seen to hang there: that says more.
bool is_told(const std::vector<Finding>& findings, const model::Process& parent, const model::Lock& lock) {
  return std::ranges::any_of(findings, [&](const Finding& finding) {
    return finding.culprit.kind == CulpritKind::kLock && finding.culprit.address == lock.address && finding.fork &&
           finding.fork->pid == parent.pid && finding.rule != "racy-orphan";
  });
}

}  // namespace

void racy_orphan(const Evidence& evidence, std::vector<Finding>& findings) {
  const model::Model& model = evidence.model();
  for (const model::RacyTouch& touch : model.racy_touches) {
    const model::Fork& fork = model.forks[touch.fork];
    const model::Process& parent = evidence.process(fork.process);
    const model::Lock& lock = model.locks[touch.lock];
    const model::Thread& holder = model.threads[touch.holder];
    // Whoever forks has the GIL, and threads that take the lock may need it for that: not to be seen from here.
    if (words::is_python(parent) || fork.python || is_told(findings, parent, lock)) continue;
    Finding finding;
    finding.rule = "racy-orphan";
    finding.harm = Certainty::kPossible;
    finding.cause = Certainty::kProven;
    finding.outcome = Outcome::kMayHang;
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
    finding.summary = fmt::format("{} may hang locking {}{}: other threads hold it {} of the time, so {}",
                                  evidence.name(touch.process), name, words::at(" at ", touch.stack),
                                  percent(touch.share), odds(touch.share));
    add_sentence(finding, fmt::format("{} took {}{}. At its fork{} the lock was free.", evidence.name(touch.process),
                                      name, words::at(" at ", touch.stack), words::at(" at ", fork.stack)));
    add_sentence(finding, fmt::format("In {} it is also taken by {}{}{}.", words::parent(parent), words::thread(holder),
                                      touch.threads > 1
                                          ? fmt::format(" and {}",
                                                        words::count(touch.threads - 1, "thread more", "threads more"))
                                          : "",
                                      words::at(", at ", touch.held_at)));
    add_sentence(finding,
                 fmt::format("They took it {} and had it {} of the {} from that process' first second thread to this "
                             "fork.",
                             words::count(touch.times, "time", "times"), percent(touch.share),
                             words::duration(touch.window_ns / 1'000'000)));
    add_sentence(
        finding,
        fmt::format("A fork that falls into such a time copies the lock in its locked state, without the thread "
                    "that would release it: then this call never returns. If the moment of the fork does not "
                    "depend on what those threads do, {}.",
                    odds(touch.share)));
    finding.fixes.push_back({"Exec right after fork(): then no lock of the parent matters."});
    finding.fixes.push_back(
        {fmt::format("Guard {} with pthread_atfork(): lock it in prepare, unlock it in parent and in child.", name),
         true});
    finding.fixes.push_back(
        {fmt::format("Fork before {} is started, while the process has one thread.", words::thread(holder))});
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
