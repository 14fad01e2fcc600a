// Parent and children of a fork send into one connection, or receive from it. The bytes of different processes mix, and
// an answer goes to the process that reads first. A fault is likely if a child used the connection, then another
// process used it, and then the child used it again. Otherwise a fault is only possible: each process may have finished
// with the connection before the next one used it. The rule considers sends and receives separately, because in some
// correct programs one process only sends and another one only receives.
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "diagnose/evidence.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

using model::Share;
using model::ShareUse;
using model::ShareUseKind;

std::vector<const ShareUse*> find_uses(const Share& share, ShareUseKind kind) {
  std::vector<const ShareUse*> uses;
  for (const ShareUse& use : share.uses) {
    if (use.kind == kind) uses.push_back(&use);
  }
  return uses;
}

// True if a child used the connection again after another process had used it. Then the times in which the two
// processes use the connection overlap. Later uses by the owner do not show this: the owner may use the connection
// again when its children are done with it.
bool is_used_in_turns(const Share& share, const std::vector<const ShareUse*>& uses) {
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (uses[i]->process == share.owner) continue;
    for (std::size_t k = i + 2; k < uses.size(); ++k) {
      if (uses[i]->process == uses[k]->process && uses[i + 1]->process != uses[i]->process) return true;
    }
  }
  return false;
}

std::string connection(const Share& share) {
  return share.peer.empty() ? fmt::format("the connection of descriptor {}", share.fd)
                            : fmt::format("the connection to {} (descriptor {})", share.peer, share.fd);
}

Finding describe(const Evidence& evidence, const Share& share, const std::vector<const ShareUse*>& uses) {
  const ShareUse& first = *uses[0];
  const ShareUse& second = *uses[1];
  const bool sent = first.kind == ShareUseKind::kSent;
  const char* const verb = sent ? "send into" : "receive from";
  const model::Fork& fork = evidence.model().forks[*first.fork];
  Finding finding = evidence.begin_finding("connection-shared", fork);
  finding.harm = is_used_in_turns(share, uses) ? Certainty::kLikely : Certainty::kPossible;
  finding.cause = finding.harm;
  finding.outcome = Outcome::kCorruption;
  finding.process = first.process;
  finding.processes = {first.process};
  finding.tid = first.tid;
  finding.stack = first.stack;
  finding.culprit.kind = CulpritKind::kStream;
  finding.culprit.name = connection(share);
  finding.culprit.stack = second.stack;
  if (const model::Frame* const frame = words::find_user_frame(first.stack)) finding.culprit.library = frame->module;
  finding.summary = fmt::format("{} and {} both {} {}, which was open at fork(){}", evidence.name(first.process),
                                evidence.name(second.process), verb, connection(share), words::at(" at ", fork.stack));
  add_sentence(finding,
               fmt::format("{} had connected it before fork(){}; both processes use one and the same connection.",
                           evidence.name(share.owner), words::at(" at ", fork.stack)));
  for (const ShareUse* use : uses) {
    add_sentence(finding, fmt::format("{} {}{}.", evidence.name(use->process), sent ? "sent" : "began to receive",
                                      words::at(" at ", use->stack)));
    if (use->process == first.process || std::ranges::count(finding.processes, use->process) != 0) continue;
    if (use->fork) finding.processes.push_back(use->process);
  }
  add_sentence(finding, sent ? "The peer gets the requests of several processes mixed, and takes them for those of one "
                               "client. If one process ends the session, the peer ends it for all of them."
                             : "The process that reads first gets the answer, even if another one had asked. The other "
                               "one waits, or takes the next answer for its own.");
  if (finding.harm == Certainty::kPossible) {
    add_sentence(
        finding,
        "No child used the connection again after another process had. If each process was done with the "
        "connection when the next process began to use it, and none ended the session at the peer, nothing is wrong.");
  }
  finding.fixes.push_back({"Connect after fork(), each process for itself.", true});
  finding.fixes.push_back(
      {"Drop the parent's connection before fork() (engine.dispose(), connections.close_all()), or in the child by "
       "closing the descriptor. Do not call the library's own close in the child: it ends the session at the peer."});
  return finding;
}

}  // namespace

void connection_shared(const Evidence& evidence, FindingList& findings) {
  for (const Share& share : evidence.model().shares) {
    if (share.kind != model::ShareKind::kConnection) continue;
    for (const ShareUseKind kind : {ShareUseKind::kSent, ShareUseKind::kReceived}) {
      const std::vector<const ShareUse*> uses = find_uses(share, kind);
      // The first recorded use must be by a forked process, and the next use by another process.
      if (uses.size() < 2 || !uses[0]->fork || uses[0]->process == uses[1]->process) continue;
      // Processes that hold a shared lock while they use the connection share the connection on purpose.
      if (std::ranges::any_of(uses, [](const ShareUse* use) { return use->under_lock; })) continue;
      findings.push_back(describe(evidence, share, uses));
      break;
    }
  }
}

}  // namespace forksight::rules
