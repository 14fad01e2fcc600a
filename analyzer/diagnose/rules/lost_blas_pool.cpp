// OpenBLAS ends an idle pool before a fork, and makes it anew in parent and child. OpenBLAS cannot end the pool while
// another thread is in a call of OpenBLAS. That thread holds the lock that admits only one call at a time. So the child
// gets a locked copy of this lock. The child's next call of OpenBLAS waits for a thread that the child does not have.
#include <fmt/core.h>

#include "diagnose/locks.hpp"
#include "diagnose/pools.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

std::string describe_outcome(const model::Process& child, const model::Touch& touch, Outcome outcome) {
  if (outcome == Outcome::kCured) return "would have hung, but for --on-orphan=recover, in";
  if (outcome != Outcome::kError) return fmt::format("{} in", hangs(child));
  return touch.action == model::TouchAction::kAborted ? "was aborted by --on-orphan=abort in" : "waited in vain in";
}

}  // namespace

void lost_blas_pool(const Evidence& evidence, FindingList& findings) {
  const model::Model& model = evidence.model();
  for (const model::Touch& touch : model.touches) {
    const std::string_view library = pools::find_blas_library(model, touch);
    if (library.empty()) continue;
    const model::Owner blas = model::find_owner_of_library(library);
    const auto orphan = locks::find_any_orphan(evidence, touch);
    if (!orphan) continue;
    const auto end = locks::find_end(evidence, touch);
    if (!end) continue;
    const model::OwnerInfo& owner = model::info_of(blas);
    Finding finding = evidence.begin_finding("lost-blas-pool", touch);
    finding.harm = end->harm;
    finding.cause = evidence.find_cause(touch);
    finding.outcome = end->outcome;
    finding.culprit = locks::describe_lock(evidence, *orphan);
    finding.culprit.kind = CulpritKind::kPool;
    finding.culprit.library = library;
    finding.culprit.name = fmt::format("{} pool", owner.name);
    std::string place = words::place_outside_of(touch.stack, blas);
    if (!place.empty()) place = fmt::format(" ({})", place);
    const std::string inside = words::place_outside_of(orphan->held.acquired_at, blas);
    finding.summary =
        fmt::format("{} {} {}{}: {} was inside of it{} at fork(){} and was left behind", evidence.name(touch.process),
                    describe_outcome(evidence.process(touch.process), touch, end->outcome), owner.name, place,
                    words::thread(orphan->holder), inside.empty() ? std::string() : fmt::format(" ({})", inside),
                    words::at(" at ", evidence.fork(touch).stack));
    locks::tell(evidence, touch, *orphan, *end, "locking",
                fmt::format("The lock is {}'s own: it lets one thread at a time use the pool. Its atfork handlers end "
                            "and restart an idle pool, but leave a call in progress as it is.",
                            owner.name),
                finding);
    finding.fixes.push_back({owner.fix});
    finding.fixes.push_back(
        {"Let the threads that compute and the thread that forks take turns: a lock of your own "
         "around both."});
    finding.fixes.push_back({"Exec right after fork(), or use posix_spawn(): then no lock of the parent matters."});
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
