// A child removed a descriptor from the epoll instance that it shares with its parent. The parent still has the file
// open and waits in the epoll instance, but gets no events of this file any more. The rule cannot prove that the
// removal is a mistake.
#include <fmt/core.h>

#include <algorithm>

#include "diagnose/evidence.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

using model::Share;
using model::ShareUse;
using model::ShareUseKind;

// Returns the first wait of the owner that began after `removed` and that lacks the file's events. Null if the owner
// recorded no such wait.
const ShareUse* find_missed(const Share& share, const ShareUse& removed) {
  const auto found = std::find_if(share.uses.begin(), share.uses.end(), [&](const ShareUse& use) {
    return &use > &removed && use.kind == ShareUseKind::kMissed && use.target == removed.target &&
           use.process == share.owner;
  });
  return found == share.uses.end() ? nullptr : &*found;
}

Finding describe(const Evidence& evidence, const Share& share, const ShareUse& removed, const ShareUse* missed) {
  const model::Fork& fork = evidence.model().forks[*removed.fork];
  const model::Process& owner = evidence.process(share.owner);
  const std::string target = fmt::format("descriptor {} (a {})", removed.target, removed.target_kind);
  const std::string child = evidence.name(removed.process);
  Finding finding;
  finding.rule = "epoll-shared";
  finding.process = share.owner;
  finding.processes = {share.owner};
  finding.tid = missed != nullptr ? missed->tid : owner.pid;
  if (missed != nullptr) finding.stack = missed->stack;
  finding.fork = evidence.fork_site(fork);
  // Even if the owner is proven dead, the harm is not proven, because the owner may wait for an event of another file.
  finding.harm = Certainty::kLikely;
  finding.cause = Certainty::kProven;
  finding.outcome = is_proven_dead(owner) ? Outcome::kHang : Outcome::kMayHang;
  finding.culprit.kind = CulpritKind::kProcess;
  finding.culprit.name = fmt::format("the interest in a {}", removed.target_kind);
  finding.culprit.stack = removed.stack;
  if (const model::Frame* const frame = words::find_user_frame(removed.stack)) finding.culprit.library = frame->module;
  finding.summary = fmt::format(
      "{} waits by epoll and gets no events of {}: {}, forked{}, removed it from the epoll instance that they share{}",
      evidence.name(share.owner), target, child, words::at(" at ", fork.stack), words::at(" at ", removed.stack));
  add_sentence(finding, fmt::format("{} has had epoll descriptor {} since before the fork{}: a fork does not copy the "
                                    "epoll instance, so both processes use one instance with one list of descriptors.",
                                    evidence.name(share.owner), share.fd, words::at(" at ", fork.stack)));
  add_sentence(finding,
               fmt::format("{} called epoll_ctl(EPOLL_CTL_DEL) for {}{}, with success, and had not added it itself.",
                           child, target, words::at(" at ", removed.stack)));
  const std::string name = evidence.name(share.owner);
  add_sentence(finding,
               missed != nullptr
                   ? fmt::format("After that {} began its next wait{}. {} has the same {} open and has not added it "
                                 "again, so {} gets no events of it.",
                                 name, words::at(" at ", missed->stack), name, removed.target_kind, name)
                   : fmt::format("At that instant {} was in a wait that it had begun after the fork. {} has the same "
                                 "{} open, and gets no events of it any more.",
                                 name, name, removed.target_kind));
  add_sentence(finding, evidence.describe_liveness(owner));
  finding.fixes.push_back(
      {"Close the inherited epoll descriptor in the child and make a new one there; remove nothing from the old one.",
       true});
  finding.fixes.push_back(
      {"With an event loop: its own call for forks (event_reinit(), ev_loop_fork(), uv_loop_fork()), before anything "
       "is taken out of the loop or closed in it. In Python do not close the inherited loop or selector in the "
       "child."});
  finding.fixes.push_back({"Make the epoll instance after the fork."});
  return finding;
}

}  // namespace

void epoll_shared(const Evidence& evidence, FindingList& findings) {
  for (const Share& share : evidence.model().shares) {
    if (share.kind != model::ShareKind::kEpoll) continue;
    for (const ShareUse& use : share.uses) {
      if (use.kind != ShareUseKind::kRemoved || !use.fork || use.process == share.owner) continue;
      const ShareUse* const missed = find_missed(share, use);
      if (missed == nullptr && !use.owner_waits) continue;
      findings.push_back(describe(evidence, share, use, missed));
    }
  }
}

}  // namespace forksight::rules
