// A process forked between the beginning and the end of a parallel region. The child has one thread of a team, but the
// team still counts its other threads. At the end of this region, or in the next region, the child waits for these
// other threads (libgomp) or crashes (LLVM's libomp). No cure works, because the state of the team is on the stacks of
// threads that the child does not have.
#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "diagnose/openmp.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

// Returns a mask with the signal that ended the process, if libomp can be the reason; otherwise 0. libomp raises
// SIGSEGV when it uses a team that it has freed. It raises SIGABRT when it notices that the team is freed.
std::uint64_t crash_signal(const model::Process& process) {
  if (!process.exit_status || !WIFSIGNALED(*process.exit_status)) return 0;
  const int signal = WTERMSIG(*process.exit_status);
  return signal == SIGSEGV || signal == SIGABRT ? std::uint64_t{1} << static_cast<unsigned>(signal - 1) : 0;
}

void tell(const Evidence& evidence, const model::Fork& fork, const model::Pool& pool, Finding& finding) {
  const model::Process& child = evidence.process(finding.process);
  add_sentence(finding, evidence.describe_liveness(child));
  add_sentence(finding,
               fmt::format("fork(){} was called by {} of {} inside of a parallel region: the child is one thread "
                           "of a team whose other threads were not copied.",
                           words::at(" at ", fork.stack), words::thread(evidence.model().threads[fork.forking_thread]),
                           words::parent(evidence.process(fork.process))));
  add_sentence(finding, finding.outcome == Outcome::kError
                            ? "LLVM's OpenMP runtime frees the team in the child while the child still runs in it."
                            : "libgomp still counts them, and waits for them at its next barrier.");
  if (pool.cure && pool.cure_result == model::CureResult::kRefusedInRegion) {
    add_sentence(finding, "forksight did not touch the pool: inside of a region nothing can be cured.");
  }
  add_sentence(finding, describe_end(child));
  finding.fixes.push_back(
      {"Move fork() out of the parallel region: after its closing brace, forksight can cure the pool at run time."});
  finding.fixes.push_back(
      {"If the child only starts another program, use posix_spawn(), or fork and exec without any OpenMP in between."});
  finding.fixes.push_back(
      {"If the region must fork, let the child leave by _exit() before the region ends, without entering another "
       "one."});
}

std::string forked_inside(const model::Fork& fork) {
  return fmt::format("it was forked{} inside of a parallel region, whose other threads it does not have",
                     words::at(" at ", fork.stack));
}

// Finds children that started another region.
void find_touches(const Evidence& evidence, FindingList& findings) {
  for (const model::Touch& touch : evidence.model().touches) {
    const model::Pool* const pool = openmp::find_lost_pool(evidence.model(), touch);
    if (pool == nullptr || !pool->in_region) continue;
    const auto hang = evidence.find_hang(touch);
    if (!hang) continue;
    Finding finding = evidence.begin_finding("fork-inside-parallel-region", touch);
    finding.harm = *hang;
    finding.cause = Certainty::kProven;
    finding.outcome = Outcome::kHang;
    finding.culprit = openmp::describe_pool(evidence, *pool);
    finding.summary =
        fmt::format("{} {} in {}: {}", evidence.name(touch.process), hangs(evidence.process(touch.process)),
                    openmp::region(touch), forked_inside(evidence.fork(touch)));
    add_sentence(finding,
                 fmt::format("Thread {} of {} entered {}{} and has not come out.", touch.tid,
                             evidence.name(touch.process), openmp::size(touch), words::at(" at ", touch.stack)));
    tell(evidence, evidence.fork(touch), *pool, finding);
    findings.push_back(std::move(finding));
  }
}

// Finds children that reached the end of the region in which they were forked. The shim sees no call at that point. So
// it is known only that the child is stuck.
void find_ends(const Evidence& evidence, FindingList& findings) {
  const model::Model& model = evidence.model();
  for (const model::Fork& fork : model.forks) {
    const model::Process* const found = evidence.find_untouched_child(fork);
    if (found == nullptr) continue;
    const model::Process& child = *found;
    const auto at =
        std::ranges::find_if(fork.pools, [&](model::PoolId id) { return openmp::is_team_in_region(model.pools[id]); });
    if (at == fork.pools.end()) continue;
    const model::Pool& pool = model.pools[*at];
    const bool is_libgomp = pool.kind == model::RuntimeKind::kLibgomp;
    const bool is_stuck = is_proven_dead(child) || child.liveness == model::Liveness::kSpinning;
    if (is_libgomp ? !is_stuck : crash_signal(child) == 0) continue;
    Finding finding = evidence.begin_finding("fork-inside-parallel-region", fork);
    finding.harm = is_libgomp && is_proven_dead(child) ? Certainty::kProven : Certainty::kLikely;
    finding.cause = Certainty::kProven;
    finding.outcome = is_libgomp ? Outcome::kHang : Outcome::kError;
    finding.culprit = openmp::describe_pool(evidence, pool);
    finding.summary =
        fmt::format("{} {}: {}", evidence.name(*fork.child),
                    is_libgomp ? hangs(child) : "died of " + words::signals(crash_signal(child)), forked_inside(fork));
    tell(evidence, fork, pool, finding);
    findings.push_back(std::move(finding));
  }
}

}  // namespace

void fork_inside_parallel_region(const Evidence& evidence, FindingList& findings) {
  find_touches(evidence, findings);
  find_ends(evidence, findings);
}

}  // namespace forksight::rules
