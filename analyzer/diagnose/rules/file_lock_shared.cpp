// After a fork, a lock of flock() or of an open file description (F_OFD_SETLK) belongs to parent and child together. If
// the child releases the lock, the parent loses it, too. The rule reports this only if the parent did not know it. The
// evidence is that the parent later released a lock that it no longer had.
#include <fmt/core.h>

#include <algorithm>

#include "diagnose/evidence.hpp"
#include "diagnose/file_locks.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

using model::FileLockEvent;
using model::FileLockUse;

bool is_release_of(const FileLockUse& released, const FileLockUse& missed) {
  return released.event == FileLockEvent::kReleased && released.kind == missed.kind && released.fd == missed.fd &&
         released.path == missed.path && released.owner == missed.owner && released.time_ns < missed.time_ns &&
         released.process != missed.process;
}

std::string describe_holder(const FileLockUse& missed) {
  if (missed.other > 0) return fmt::format("process {}", missed.other);
  return missed.other < 0 ? "somebody else" : "";
}

Finding describe(const Evidence& evidence, const FileLockUse& released, const FileLockUse& missed) {
  const model::Fork& fork = evidence.model().forks[released.fork];
  const std::string file = file_locks::name_file(released);
  const std::string child = evidence.name(released.process);
  const std::string owner = evidence.name(missed.process);
  const std::string other = describe_holder(missed);
  const std::string time = words::duration((missed.time_ns - released.time_ns) / words::kNsPerMs);
  Finding finding = file_locks::begin_finding(evidence, "file-lock-shared", released);
  // The harm is proven if another process took a conflicting lock while the owner acted as if it still held this lock.
  // Locks exist to prevent exactly this.
  finding.harm = other.empty() ? Certainty::kPossible : Certainty::kProven;
  finding.cause = finding.harm;
  finding.processes.push_back(missed.process);
  finding.summary = fmt::format(
      "{} releases the lock of {}{} that {} believes it holds{}: since a fork, both share this lock", child, file,
      words::at(" at ", released.stack), owner, other.empty() ? "" : fmt::format(", and {} takes it", other));
  add_sentence(finding, fmt::format("{} had locked {}{}, and then called fork(){}.", owner, file,
                                    words::at(" at ", missed.taken_at), words::at(" at ", fork.stack)));
  add_sentence(finding,
               fmt::format("A lock of {} belongs to the open file, which both processes have: if one process releases "
                           "the lock, both lose it.",
                           missed.kind == model::FileLockKind::kFlock ? "flock()" : "F_OFD_SETLK"));
  add_sentence(finding,
               fmt::format("{} released the lock{}. {} released the lock{} {} later, and until then worked as if it "
                           "still held the lock.",
                           child, words::at(" at ", released.stack), owner, words::at(" at ", missed.stack), time));
  if (!other.empty()) {
    add_sentence(
        finding,
        fmt::format(
            "At that time {} held a lock of the file that excludes this one: two processes worked where only one may.",
            other));
  }
  finding.fixes.push_back(
      {"Let the child close its descriptor instead: that releases nothing while the parent has it open.", true});
  finding.fixes.push_back({"Open the file anew in the child, and lock that: then it is a lock of its own."});
  return finding;
}

}  // namespace

void file_lock_shared(const Evidence& evidence, FindingList& findings) {
  const auto& uses = evidence.model().file_lock_uses;
  for (const FileLockUse& missed : uses) {
    if (missed.event != FileLockEvent::kMissed) continue;
    const auto released = std::ranges::find_if(uses, [&](const auto& use) { return is_release_of(use, missed); });
    if (released != uses.end()) findings.push_back(describe(evidence, *released, missed));
  }
}

}  // namespace forksight::rules
