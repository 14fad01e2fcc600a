// A forked child calls the CUDA driver, which its parent had initialised before the fork. The driver refuses every such
// call, even cuInit. The driver's own answer is the proof. There is one finding for each process, because many further
// refusals follow the first one.
#include <fmt/core.h>
#include <sys/wait.h>

#include <algorithm>
#include <map>
#include <vector>

#include "diagnose/cuda.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

constexpr int kNotInitialised = 3;
constexpr std::size_t kMostNamed = 4;

using Touches = std::vector<const model::Touch*>;

bool is_refused(const model::Touch& touch) { return touch.returned && touch.result != 0; }

bool is_stuck_in(const Evidence& evidence, const model::Touch& touch) {
  const model::Process& process = evidence.process(touch.process);
  return !touch.returned && evidence.find_hang(touch) && (is_proven_dead(process) || process.stuck_for_ms > 0);
}

bool has_failed(const model::Process& process) {
  return process.exit_status && !(WIFEXITED(*process.exit_status) && WEXITSTATUS(*process.exit_status) == 0);
}

// Chooses the call that the finding is about; null if no call shows harm.
const model::Touch* choose(const Evidence& evidence, const Touches& touches) {
  for (const model::Touch* touch : touches) {
    if (is_stuck_in(evidence, *touch)) return touch;
  }
  for (const model::Touch* touch : touches) {
    if (is_refused(*touch) && !cuda::only_queries(*touch)) return touch;
  }
  if (!has_failed(evidence.process(touches.front()->process))) return nullptr;
  const auto refused = std::ranges::find_if(touches, [](const model::Touch* touch) { return is_refused(*touch); });
  return refused == touches.end() ? nullptr : *refused;
}

std::string describe_others(const Touches& touches, const model::Touch& chosen) {
  std::string names;
  std::size_t count = 0;
  for (const model::Touch* touch : touches) {
    if (touch == &chosen || !is_refused(*touch)) continue;
    if (count++ < kMostNamed) names += (names.empty() ? "" : ", ") + cuda::plain_name(*touch);
  }
  if (count == 0) return {};
  if (count > kMostNamed) names += ", ...";
  return fmt::format("{} that it called {} refused, too: {}.",
                     words::count(count, "other function of the driver", "other functions of the driver"),
                     count == 1 ? "was" : "were", names);
}

Certainty certainty_of(const model::Touch& touch, bool is_stuck) {
  if (is_stuck) return Certainty::kProven;
  // Every such call had to fail after the fork. But only the error kNotInitialised shows that the fork is the cause.
  if (touch.result != kNotInitialised) return Certainty::kLikely;
  return cuda::only_queries(touch) ? Certainty::kLikely : Certainty::kProven;
}

Finding describe(const Evidence& evidence, const Touches& touches, const model::Touch& touch) {
  const model::Fork& fork = evidence.fork(touch);
  const model::Process& child = evidence.process(touch.process);
  const bool is_stuck = !touch.returned;
  Finding finding = evidence.begin_finding("cuda-used-after-fork", touch);
  finding.harm = certainty_of(touch, is_stuck);
  finding.cause = finding.harm;
  finding.outcome = is_stuck ? Outcome::kHang : Outcome::kError;
  finding.culprit = cuda::describe_driver(evidence, fork);
  const std::string where = words::at(" at ", touch.stack);
  const std::string what =
      is_stuck ? fmt::format("{} in {}{}", hangs(child), cuda::plain_name(touch), where)
               : fmt::format("called {}{} and got {}", cuda::plain_name(touch), where, cuda::answer(touch.result));
  finding.summary = fmt::format("{} {}: {} before fork(){}", evidence.name(touch.process), what,
                                cuda::describe_init(*fork.cuda), words::at(" at ", fork.stack));
  if (is_stuck) {
    add_sentence(finding, fmt::format("Thread {} of {} called {}{} and has not come back.", touch.tid,
                                      evidence.name(touch.process), cuda::plain_name(touch), where));
    add_sentence(finding, evidence.describe_liveness(child));
  } else {
    add_sentence(finding,
                 fmt::format("Thread {} of {} called {}{}; the driver answered {}.", touch.tid,
                             evidence.name(touch.process), cuda::plain_name(touch), where, cuda::answer(touch.result)));
  }
  add_sentence(finding, describe_others(touches, touch));
  cuda::tell_init(evidence, fork, finding);
  add_sentence(
      finding,
      fmt::format(
          "The driver's contexts and its threads belong to the process that initialised the driver. They do not "
          "survive a fork, and cuInit does not make them anew in the child{}.",
          is_stuck ? "" : ": every call there is refused"));
  add_sentence(finding, describe_end(child));
  cuda::add_fixes(child, *fork.cuda, finding);
  return finding;
}

}  // namespace

void cuda_used_after_fork(const Evidence& evidence, FindingList& findings) {
  std::map<model::ProcessId, Touches> by_process;
  for (const model::Touch& touch : evidence.model().touches) {
    const auto& cuda = evidence.fork(touch).cuda;
    if (touch.kind == model::TouchKind::kCudaCall && cuda && cuda->is_initialised) {
      by_process[touch.process].push_back(&touch);
    }
  }
  for (const auto& [process, touches] : by_process) {
    const model::Touch* const touch = choose(evidence, touches);
    if (touch != nullptr) findings.push_back(describe(evidence, touches, *touch));
  }
}

}  // namespace forksight::rules
