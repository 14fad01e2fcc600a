// A child unlocks bytes of a file that only its parent has locked. The parent locked them by fcntl() or lockf() before
// the fork. The child acted as if it had the lock. An unlock alone does no harm. So the rule reports the unlock only if
// the file was written to between the fork and the unlock. If it is known that the child wrote nothing, or that the
// parent wrote, the rule reports nothing.
#include <fmt/core.h>

#include "diagnose/evidence.hpp"
#include "diagnose/file_locks.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

using model::FileLockUse;

// The parent's lock keeps out all processes that ask for a lock. If the parent did not write, the writer is probably
// the child, which did not ask for a lock.
std::optional<Certainty> find_certainty(const FileLockUse& use) {
  if (use.event != model::FileLockEvent::kForeignUnlock || !use.file_changed) return std::nullopt;
  if (!use.writer_known) return Certainty::kPossible;
  if (!use.child_wrote || use.parent_wrote) return std::nullopt;
  return Certainty::kLikely;
}

Finding describe(const Evidence& evidence, const FileLockUse& use, Certainty certainty) {
  const model::Fork& fork = evidence.model().forks[use.fork];
  const std::string file = file_locks::name_file(use);
  const std::string child = evidence.name(use.process);
  const std::string parent = words::parent(evidence.process(fork.process));
  const std::string at_fork = words::at(" at ", fork.stack);
  Finding finding = file_locks::begin_finding(evidence, "file-lock-lost", use);
  finding.harm = certainty;
  finding.cause = finding.harm;
  finding.summary = fmt::format(
      "{} unlocks {}{} without having locked it: the lock that {} took before fork(){} is not "
      "inherited",
      child, file, words::at(" at ", use.stack), parent, at_fork);
  add_sentence(finding, fmt::format("{} had locked {} of {}{}, and then called fork(){}.", parent,
                                    file_locks::name_range(use), file, words::at(" at ", use.taken_at), at_fork));
  add_sentence(
      finding,
      "A lock of fcntl() or lockf() belongs to the process that took it: the child has the descriptor, not the "
      "lock.");
  add_sentence(finding,
               fmt::format("When {} unlocked it{}, {} still held the lock, as the kernel shows. {} never held it.",
                           child, words::at(" at ", use.stack), parent, child));
  add_sentence(finding, use.writer_known ? fmt::format("The file was written to in between. {} has written since the "
                                                       "fork, {} has not.",
                                                       child, parent)
                                         : "The file was written to in between. It is not known which process wrote.");
  add_sentence(finding, "No lock protected what the child read and wrote there.");
  finding.fixes.push_back({"Take the lock in the child, after fork().", true});
  finding.fixes.push_back({"Use a lock that a fork shares (flock(), F_OFD_SETLK), and let one side alone release it."});
  return finding;
}

}  // namespace

void file_lock_lost(const Evidence& evidence, FindingList& findings) {
  for (const FileLockUse& use : evidence.model().file_lock_uses) {
    if (const auto certainty = find_certainty(use)) findings.push_back(describe(evidence, use, *certainty));
  }
}

}  // namespace forksight::rules
