// A fork between the beginning and the end of a parallel region: the child is the only thread of a team that says it
// has more, and its next region (or the end of this one) waits for them. No cure works: the team's state is on the
// stacks of threads that are gone.
#include <fmt/core.h>

#include "diagnose/openmp.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

void fork_inside_parallel_region(const Evidence& evidence, std::vector<Finding>& findings) {
  for (const model::Touch& touch : evidence.model().touches) {
    const model::Pool* const pool = openmp::find_lost_pool(evidence.model(), touch);
    if (pool == nullptr || !pool->in_region) continue;
    const auto hang = evidence.find_hang(touch);
    if (!hang) continue;
    const model::Process& child = evidence.process(touch.process);
    const model::Fork& fork = evidence.fork(touch);
    Finding finding = evidence.begin_finding("fork-inside-parallel-region", touch);
    finding.certainty = *hang;
    finding.outcome = Outcome::kHang;
    finding.culprit = openmp::describe_pool(evidence, *pool);
    finding.summary = fmt::format("{} {} in {}: it was forked{} inside of a parallel region, whose other threads it does not have",
                                  evidence.name(touch.process), hangs(child), openmp::region(touch), words::at(" at ", fork.stack));
    add_sentence(finding, fmt::format("Thread {} of {} entered a parallel region for {} threads{} and has not come out.", touch.tid,
                                      evidence.name(touch.process), touch.team, words::at(" at ", touch.stack)));
    add_sentence(finding, describe_liveness(child));
    add_sentence(finding, fmt::format("fork(){} was called by thread {} of process {} inside of a parallel region: the child is one thread "
                                      "of a team whose others were not copied.",
                                      words::at(" at ", fork.stack), evidence.model().threads[fork.forking_thread].tid,
                                      evidence.process(fork.process).pid));
    add_sentence(finding, "libgomp still counts them, and waits for them at its next barrier.");
    if (pool->cure && pool->cure_result == model::CureResult::kRefusedInRegion) {
      add_sentence(finding, "forksight did not touch the pool: inside of a region nothing can be cured.");
    }
    add_sentence(finding, describe_end(child));
    finding.fixes.push_back({"Move fork() out of the parallel region: after its closing brace, forksight can cure the pool at run time."});
    finding.fixes.push_back({"If the child only starts another program, use posix_spawn(), or fork and exec without any OpenMP in between."});
    finding.fixes.push_back({"If the region must fork, let the child leave by _exit() without entering another region."});
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
