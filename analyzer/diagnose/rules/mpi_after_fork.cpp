// A forked child calls MPI or UCX, which its parent had initialised. Connections, registered memory and progress
// threads belong to the parent. What such a call does depends on the library. Some libraries support a fork
// (RDMAV_FORK_SAFE). So if a call returned without an error, the finding is only "possible". There is one finding for
// each process.
#include <fmt/core.h>
#include <sys/wait.h>

#include <algorithm>
#include <map>
#include <vector>

#include "diagnose/evidence.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

constexpr std::size_t kMostNamedCalls = 4;

using Calls = std::vector<const model::Touch*>;

const char* name_of(model::MpiKind kind) { return kind == model::MpiKind::kUcx ? "UCX" : "MPI"; }

const model::Mpi* find_library(const Evidence& evidence, const model::Touch& touch) {
  const auto kind = touch.function.starts_with("ucp_") ? model::MpiKind::kUcx : model::MpiKind::kMpi;
  const auto& all = evidence.fork(touch).mpi;
  const auto found = std::ranges::find(all, kind, &model::Mpi::kind);
  return found == all.end() ? nullptr : &*found;
}

enum class CallResult { kHangs, kEndedInside, kRefused, kWorked };

std::optional<CallResult> find_result(const Evidence& evidence, const model::Touch& touch) {
  if (touch.returned) return touch.result != 0 ? CallResult::kRefused : CallResult::kWorked;
  const model::Process& process = evidence.process(touch.process);
  // If a call has not returned, it may just wait for a message that comes late. If the process is a victim, another
  // finding explains the process for which it waits. So only a process that is proven dead counts as hanging.
  if (evidence.find_hang(touch) && is_proven_dead(process)) return CallResult::kHangs;
  // If a call fails and the program has set no other error handler, MPI itself ends the process.
  const bool failed =
      process.exit_status && !(WIFEXITED(*process.exit_status) && WEXITSTATUS(*process.exit_status) == 0);
  if (failed) return CallResult::kEndedInside;
  return std::nullopt;
}

struct Chosen {
  const model::Touch* touch = nullptr;
  CallResult call_result = CallResult::kWorked;
};

// Chooses the gravest call. If several calls are equally grave, chooses the first of them.
Chosen choose_call(const Evidence& evidence, const Calls& touches) {
  Chosen chosen;
  for (const model::Touch* touch : touches) {
    const auto call_result = find_result(evidence, *touch);
    if (call_result && (chosen.touch == nullptr || *call_result < chosen.call_result)) chosen = {touch, *call_result};
  }
  return chosen;
}

std::string what_came(const Evidence& evidence, const Chosen& chosen, const std::string& where) {
  const model::Touch& touch = *chosen.touch;
  switch (chosen.call_result) {
    case CallResult::kHangs:
      return fmt::format("{} in {}{}", hangs(evidence.process(touch.process)), touch.function, where);
    case CallResult::kEndedInside: return fmt::format("ended inside of {}{}", touch.function, where);
    case CallResult::kRefused: return fmt::format("called {}{} and got error {}", touch.function, where, touch.result);
    case CallResult::kWorked: break;
  }
  return fmt::format("called {}{}", touch.function, where);
}

std::string describe_other_calls(const Calls& touches, const model::Touch& chosen) {
  std::string names;
  std::size_t count = 0;
  for (const model::Touch* touch : touches) {
    if (touch == &chosen) continue;
    if (count++ < kMostNamedCalls) names += (names.empty() ? "" : ", ") + touch->function;
  }
  if (count == 0) return {};
  if (count > kMostNamedCalls) names += ", ...";
  return fmt::format("It called {}, too.", names);
}

void set_certainty(const Evidence& evidence, const Chosen& chosen, Finding& finding) {
  switch (chosen.call_result) {
    case CallResult::kHangs:
      finding.harm = *evidence.find_hang(*chosen.touch);
      finding.cause = finding.harm;
      finding.outcome = Outcome::kHang;
      break;
    case CallResult::kEndedInside:
    case CallResult::kRefused:
      finding.harm = Certainty::kLikely;
      finding.cause = finding.harm;
      finding.outcome = Outcome::kError;
      break;
    case CallResult::kWorked:
      finding.harm = Certainty::kPossible;
      finding.cause = finding.harm;
      finding.outcome = Outcome::kCorruption;
      break;
  }
}

Finding describe(const Evidence& evidence, const Calls& touches, const Chosen& chosen, const model::Mpi& mpi) {
  const model::Touch& touch = *chosen.touch;
  const model::Fork& fork = evidence.fork(touch);
  const model::Process& child = evidence.process(touch.process);
  const char* const library = name_of(mpi.kind);
  const std::string where = words::at(" at ", touch.stack);
  const std::string at_fork = words::at(" at ", fork.stack);
  Finding finding = evidence.begin_finding("mpi-after-fork", touch);
  set_certainty(evidence, chosen, finding);
  finding.culprit.kind = CulpritKind::kDevice;
  finding.culprit.name = library;
  finding.culprit.library = mpi.library;
  finding.summary = fmt::format("{} {}: {} was initialised before fork(){}", evidence.name(touch.process),
                                what_came(evidence, chosen, where), library, at_fork);
  const std::int32_t parent = evidence.process(fork.process).pid;
  add_sentence(finding, fmt::format("Thread {} of {} {}.", touch.tid, evidence.name(touch.process),
                                    what_came(evidence, chosen, where)));
  if (chosen.call_result == CallResult::kHangs) add_sentence(finding, evidence.describe_liveness(child));
  add_sentence(finding, describe_other_calls(touches, touch));
  add_sentence(finding, fmt::format("{}{} had initialised {} before this fork{}{}.",
                                    mpi.was_lost ? "An ancestor of process " : "Process ", parent, library, at_fork,
                                    mpi.library.empty() ? "" : fmt::format(" ({})", words::base_name(mpi.library))));
  add_sentence(finding,
               "Parent and child share its connections, memory that was registered with a network card may not be "
               "where the card expects it, and the child does not have the threads that moved messages on.");
  if (chosen.call_result == CallResult::kWorked) {
    add_sentence(
        finding,
        "The call returned. But what two processes send over one connection may be mixed up at its other end.");
  }
  add_sentence(finding, describe_end(child));
  finding.fixes.push_back({fmt::format("Call {} only in the parent: let the child do other work, and let it send its "
                                       "results to the parent by a pipe or by shared memory.",
                                       library),
                           true});
  finding.fixes.push_back(
      {fmt::format("Fork before {} is initialised; or let the job's launcher start more ranks.", library)});
  finding.fixes.push_back(
      {"Exec in the child (posix_spawn()): a new program inherits none of this. With InfiniBand set RDMAV_FORK_SAFE=1, "
       "or call ibv_fork_init() first of all."});
  return finding;
}

}  // namespace

void mpi_after_fork(const Evidence& evidence, FindingList& findings) {
  std::map<model::ProcessId, Calls> by_process;
  for (const model::Touch& touch : evidence.model().touches) {
    if (touch.kind == model::TouchKind::kMpiCall && find_library(evidence, touch) != nullptr)
      by_process[touch.process].push_back(&touch);
  }
  for (const auto& [process, touches] : by_process) {
    const Chosen chosen = choose_call(evidence, touches);
    if (chosen.touch != nullptr)
      findings.push_back(describe(evidence, touches, chosen, *find_library(evidence, *chosen.touch)));
  }
}

}  // namespace forksight::rules
