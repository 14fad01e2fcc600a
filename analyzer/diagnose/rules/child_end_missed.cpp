// A process sleeps until a signal comes. SIGCHLD would wake it, but SIGCHLD came before the process slept: a child has
// ended, and the process has not waited for that child. Probably the process asked whether the child was alive, and
// then the child ended. After that, the process went to sleep and expected that the end of the child would wake it.
#include <fmt/core.h>

#include <csignal>

#include "diagnose/evidence.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/suspects.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

// A shorter sleep does not count. A signal that was still pending would have woken the process within this time.
constexpr std::uint64_t kLeastRestMs = 100;

bool is_woken_by_children(const model::Wait& wait) {
  return wait.kind == model::WaitKind::kSignal && !wait.has_timeout && wait.state == 'S' &&
         (wait.woken_by & 1ULL << (SIGCHLD - 1)) != 0 && wait.for_ms.value_or(0) >= kLeastRestMs;
}

Finding describe_missed(const Evidence& evidence, model::ProcessId id, const model::Wait& wait) {
  const model::Process& process = evidence.process(id);
  const model::Zombie& child = process.zombies.front();
  const std::string name = evidence.name(id);
  Finding finding = Evidence::begin_finding("child-end-missed", id, wait);
  finding.harm = Certainty::kPossible;
  finding.cause = Certainty::kPossible;
  finding.outcome = Outcome::kMayHang;
  finding.culprit.kind = CulpritKind::kProcess;
  finding.culprit.name = fmt::format("process {} ({}), which has ended", child.pid, child.name);
  finding.summary = fmt::format(
      "{} sleeps until a signal comes{}, and the SIGCHLD of process {} ({}), which has ended, "
      "came before that",
      name, words::at(" at ", wait.stack), child.pid, child.name);
  add_sentence(finding, fmt::format("Thread {} of {} has slept for {}{}, until a signal comes. SIGCHLD would wake it.",
                                    wait.tid, name, words::duration(*wait.for_ms), words::at(" at ", wait.stack)));
  add_sentence(
      finding,
      process.zombies.size() == 1
          ? fmt::format("Its child {} ({}) has ended, and nobody has waited for that end.", child.pid, child.name)
          : fmt::format("{} children of the process have ended, the first of them {} ({}), and nobody has "
                        "waited for their ends.",
                        process.zombies.size(), child.pid, child.name));
  add_sentence(finding,
               "No SIGCHLD is pending for the process: the signal of that end was delivered before the thread slept. "
               "One SIGCHLD may "
               "also stand for several children.");
  add_sentence(finding, "This is not certain: the process may wait for another signal, and for its children later.");
  finding.fixes.push_back(
      {"Block SIGCHLD before asking whether the child lives, and sleep with sigsuspend(), which unblocks it and "
       "sleeps in one step."});
  finding.fixes.push_back({"Wait for the child itself: waitpid(), or a pidfd in poll()."});
  finding.fixes.push_back({"After each SIGCHLD call waitpid(-1, ..., WNOHANG) until no ended child is left."});
  return finding;
}

}  // namespace

void child_end_missed(const Evidence& evidence, FindingList& findings) {
  const model::Model& model = evidence.model();
  suspects::Explained explained;
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    const model::Process& process = model.processes[id];
    if (process.zombies.empty() || explained.has(evidence, id, findings)) continue;
    for (const model::Wait& wait : process.waits) {
      if (!is_woken_by_children(wait)) continue;
      findings.push_back(describe_missed(evidence, id, wait));
      break;
    }
  }
}

}  // namespace forksight::rules
