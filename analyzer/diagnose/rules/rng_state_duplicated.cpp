// Children of one process got the same first number from libc's random number generator. They inherited the state of
// the generator from their parent and did not seed it. So they all draw the same numbers in the same order. It is as
// good as proven that the numbers are equal. It is not proven that this does harm.
#include <fmt/core.h>

#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "diagnose/evidence.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

using model::Draw;
using model::Generator;

using DrawKey = std::tuple<std::string, std::int32_t, Generator, std::uint64_t>;  // host, parent, generator, value

Finding describe(const Evidence& evidence, const std::vector<const Draw*>& draws) {
  const Draw& first = *draws[0];
  const bool is_random = first.generator == Generator::kRandom;
  const char* const functions = is_random ? "random() and rand()" : "drand48() and related functions";
  Finding finding;
  finding.rule = "rng-state-duplicated";
  if (first.fork) finding.fork = evidence.fork_site(evidence.model().forks[*first.fork]);
  finding.harm = Certainty::kPossible;
  finding.cause = Certainty::kProven;
  finding.outcome = Outcome::kCorruption;
  finding.process = first.process;
  finding.tid = first.tid;
  finding.stack = first.stack;
  finding.culprit.kind = CulpritKind::kStream;
  finding.culprit.name = fmt::format("the state of {}", functions);
  if (const model::Frame* const frame = words::find_user_frame(first.stack)) finding.culprit.library = frame->module;
  for (const Draw* draw : draws) finding.processes.push_back(draw->process);
  finding.summary =
      fmt::format("{} children of process {} draw the same random numbers{}: fork() copied the state of {}",
                  draws.size(), evidence.process(first.process).ppid, words::at(" at ", first.stack), functions);
  add_sentence(finding,
               fmt::format("The first number that each of them drew is {}{}, from the state that it had from its "
                           "parent; the numbers that follow are the same, too, until one of them seeds the generator.",
                           first.value, is_random ? "" : " (of 2^31)"));
  add_sentence(finding, "None of them had seeded the generator by then.");
  add_sentence(finding,
               "Samples that should be independent are not; names, ports and keys that should differ are equal.");
  const bool is_tested = is_random;
  finding.fixes.push_back({is_random ? "Call srandom() or srand() in each child, with another seed in each."
                                     : "Call srand48() in each child, with another seed in each.",
                           is_tested});
  finding.fixes.push_back({"Use getrandom() or arc4random(), which have no state that a fork could copy."});
  return finding;
}

}  // namespace

void rng_state_duplicated(const Evidence& evidence, FindingList& findings) {
  std::map<DrawKey, std::vector<const Draw*>> by_value;
  std::set<std::pair<DrawKey, model::ProcessId>> known;
  for (const Draw& draw : evidence.model().draws) {
    const model::Process& process = evidence.process(draw.process);
    if (process.ppid == 0) continue;
    const DrawKey key{process.host, process.ppid, draw.generator, draw.value};
    if (known.emplace(key, draw.process).second) by_value[key].push_back(&draw);
  }
  for (const auto& [key, draws] : by_value) {
    if (draws.size() > 1) findings.push_back(describe(evidence, draws));
  }
}

}  // namespace forksight::rules
