// Two OpenMP runtimes are in one process. The child hangs in the runtime that does not notice a fork. The other runtime
// would have made its pool anew. This is lost-openmp-pool with one more fix: use one runtime for everything. If two
// runtimes cause no hang, they are no finding.
#include <fmt/core.h>

#include "diagnose/openmp.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

void mixed_openmp_runtimes(const Evidence& evidence, FindingList& findings) {
  for (const model::Touch& touch : evidence.model().touches) {
    const model::Pool* const pool = openmp::find_lost_pool(evidence.model(), touch);
    if (pool == nullptr || pool->in_region || touch.cured) continue;
    const model::Pool* const other = openmp::find_other_runtime(evidence.model(), evidence.fork(touch));
    const auto hang = evidence.find_hang(touch);
    if (other == nullptr || !hang) continue;
    const std::string_view lost = words::base_name(pool->library);
    const std::string_view rebuilt = words::base_name(other->library);
    Finding finding = evidence.begin_finding("mixed-openmp-runtimes", touch);
    finding.harm = *hang;
    finding.cause = evidence.find_cause(touch);
    finding.outcome = Outcome::kHang;
    finding.culprit = openmp::describe_pool(evidence, *pool);
    finding.summary = fmt::format(
        "{} {} in {}: it runs on {}, whose pool was lost in fork(){}; the process also has {}, which would have made "
        "its pool anew",
        evidence.name(touch.process), hangs(evidence.process(touch.process)), openmp::region(touch), lost,
        words::at(" at ", evidence.fork(touch).stack), rebuilt);
    add_sentence(finding,
                 fmt::format("Thread {} of {} entered {}{} and has not come out.", touch.tid,
                             evidence.name(touch.process), openmp::size(touch), words::at(" at ", touch.stack)));
    add_sentence(finding, evidence.describe_liveness(evidence.process(touch.process)));
    add_sentence(finding, fmt::format("Two OpenMP runtimes are loaded: {} ({}) and {} ({}).", lost,
                                      "does not notice a fork", rebuilt, "makes its pool anew in the child"));
    add_sentence(finding,
                 "The loader decides for each library on which of the two its regions run. So the program's own "
                 "regions may be safe while those of a library are not.");
    add_sentence(finding, describe_end(evidence.process(touch.process)));
    finding.fixes.push_back(
        {fmt::format("Use {} for everything: it has libgomp's entry points, too, and serves code built "
                     "by gcc (LD_PRELOAD={}, or link that and not libgomp).",
                     rebuilt, rebuilt)});
    finding.fixes.push_back(
        {"Or run it under `forksight run --omp=rebuild -- ...`: the child makes a fresh libgomp pool of full size."});
    openmp::add_general_fixes(finding, evidence.process(touch.process));
    openmp::add_other_runtime(finding);
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
