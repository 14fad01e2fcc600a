// A thread waits in open() until somebody opens the other end of a FIFO, and there is evidence that nobody will. Either
// the name of the FIFO is removed, or a child or sibling that may have been meant to open the FIFO has ended. The
// evidence is needed, because a service that waits for its next client sleeps in the same open().
#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "diagnose/evidence.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/suspects.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

const model::Process* find_parent(const model::Model& model, const model::Process& process) {
  const auto at = std::ranges::find(model.processes, process.ppid, &model::Process::pid);
  return at == model.processes.end() ? nullptr : &*at;
}

// True if the thread waits for a child, for the end of a thread, or in open() for the other end of a FIFO. Such a
// thread does nothing else until its wait ends.
bool is_bound(const model::Wait& wait) {
  return wait.kind == model::WaitKind::kWaitChild || wait.kind == model::WaitKind::kFifoOpen ||
         (wait.kind == model::WaitKind::kFutex && wait.use == model::FutexUse::kJoin);
}

// Returns the programs of which at least one thread is not bound. The thread may be in any process of the program. Such
// a thread may open the FIFO later.
std::unordered_set<std::string_view> find_free_programs(const model::Model& model) {
  std::unordered_set<std::string_view> programs;
  for (const model::Process& process : model.processes) {
    if (has_ended(process) || process.is_some_ancestor) continue;
    if (process.waits.empty() || !std::ranges::all_of(process.waits, is_bound)) programs.insert(process.exe);
  }
  return programs;
}

// Returns a process that may have been meant to open the FIFO. This process has ended, and nobody has waited for its
// end yet. If `process` has such a child, it is that child. Otherwise it is a sibling, but only if the sibling and
// `process` are both forked copies of their parent. Null: there is no such child or sibling, or somebody else may open
// the FIFO.
const model::Zombie* find_lost_peer(const model::Model& model,
                                    const std::unordered_set<std::string_view>& free_programs,
                                    const model::Process& process) {
  if (free_programs.contains(process.exe)) return nullptr;
  if (!process.zombies.empty()) return &process.zombies.front();
  const model::Process* const parent = find_parent(model, process);
  if (parent == nullptr || parent->exe != process.exe) return nullptr;
  const auto brother = std::ranges::find_if(parent->zombies, &model::Zombie::is_fork);
  return brother == parent->zombies.end() ? nullptr : &*brother;
}

bool has_peer(const model::Wait& wait) {
  return std::ranges::any_of(wait.enders, [](const model::Ender& ender) {
    return ender.kind == model::EnderKind::kProcess || ender.kind == model::EnderKind::kContinue;
  });
}

Finding describe(const Evidence& evidence, model::ProcessId id, const model::Wait& wait, const model::Zombie* peer) {
  const bool is_removed = peer == nullptr;
  Finding finding = Evidence::begin_finding("fifo-without-peer", id, wait);
  finding.harm = is_removed ? Certainty::kLikely : Certainty::kPossible;
  finding.cause = finding.harm;
  finding.outcome = is_removed ? Outcome::kHang : Outcome::kMayHang;
  finding.culprit.kind = CulpritKind::kPipe;
  finding.culprit.name = fmt::format("the FIFO {}", wait.path);
  const std::string name = evidence.name(id);
  const std::string since = wait.for_ms ? fmt::format(" for {}", words::duration(*wait.for_ms)) : std::string();
  const std::string where = words::at(" at ", wait.stack);
  finding.summary =
      is_removed
          ? fmt::format("{} opens the FIFO {}{}, and nobody can open its other end any more: the name is removed", name,
                        wait.path, where)
          : fmt::format(
                "{} opens the FIFO {}{}, and nobody has the other end open: process {} ({}) may have been meant to "
                "open it, but has ended",
                name, wait.path, where, peer->pid, peer->name);
  add_sentence(finding,
               fmt::format("Thread {} of {} has waited{} in open(){}: it returns once somebody opens the other "
                           "end.",
                           wait.tid, name, since, words::at(" at ", wait.stack)));
  add_sentence(finding, "No process has the other end open.");
  if (is_removed) {
    add_sentence(finding, "The name of the FIFO is removed, so nobody can find it any more.");
  } else {
    add_sentence(finding, fmt::format("Process {} ({}) has ended, and nobody has waited for its end yet.", peer->pid,
                                      peer->name));
    add_sentence(finding, "This is not certain: anybody may still open the FIFO by its name.");
  }
  finding.fixes.push_back(
      {"Open both ends before anything can fail, or open with O_RDWR, which does not wait for anybody (Linux)."});
  finding.fixes.push_back(
      {"Open with O_NONBLOCK, which does not wait. Until the other end is open, check again and again whether the "
       "other process has ended: waitpid() with WNOHANG."});
  if (!is_removed)
    finding.fixes.push_back(
        {fmt::format("To let it go on now: open the other end once, as `: > {}` does for a reader.", wait.path)});
  return finding;
}

}  // namespace

void fifo_without_peer(const Evidence& evidence, FindingList& findings) {
  const model::Model& model = evidence.model();
  suspects::Explained explained;
  const std::unordered_set<std::string_view> free_programs = find_free_programs(model);
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    const model::Process& process = model.processes[id];
    if (explained.has(evidence, id, findings)) continue;
    for (const model::Wait& wait : process.waits) {
      if (wait.kind != model::WaitKind::kFifoOpen || !wait.are_enders_known || has_peer(wait)) continue;
      const model::Zombie* const peer = wait.is_unlinked ? nullptr : find_lost_peer(model, free_programs, process);
      if (wait.is_unlinked || peer != nullptr) findings.push_back(describe(evidence, id, wait, peer));
    }
  }
}

}  // namespace forksight::rules
