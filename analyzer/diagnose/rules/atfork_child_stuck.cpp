// A child handler (pthread_atfork()) does not return, so fork() never returns in the child. The child of a process with
// threads may not do what this handler does: it takes a lock that a lost thread held at the fork, or it waits for a
// lost thread.
#include <map>

#include "diagnose/handlers.hpp"
#include "diagnose/openmp.hpp"
#include "diagnose/rules.hpp"

namespace forksight::rules {

void atfork_child_stuck(const Evidence& evidence, FindingList& findings) {
  std::map<const model::HandlerRun*, const model::Touch*> touches;  // the first touch of each handler
  for (const model::Touch& touch : evidence.model().touches) touches.try_emplace(evidence.find_handler(touch), &touch);
  for (const model::HandlerRun& run : evidence.model().handler_runs) {
    if (run.phase != model::HandlerPhase::kChild) continue;
    const auto end = handlers::find_end(evidence, run);
    if (!end) continue;
    const auto touch = touches.find(&run);
    Finding finding =
        handlers::describe("atfork-child-stuck", evidence, run, *end, touch == touches.end() ? nullptr : touch->second);
    add_sentence(finding,
                 "A child handler may only do what is async-signal-safe: the locks of libraries are as other threads "
                 "left them, and the child does not have those threads.");
    const bool waits_for_pool =
        touch != touches.end() && openmp::find_lost_pool(evidence.model(), *touch->second) != nullptr;
    if (waits_for_pool) {
      finding.fixes.push_back(
          {"Run it under `forksight run --omp=rebuild -- ...`: the child has no old pool to wait for.", true});
      finding.fixes.push_back({"End the pool in the prepare handler, in the parent, not in the child."});
    }
    finding.fixes.push_back(
        {"In the library: let the child handler only re-initialise what the prepare handler had locked. Start "
         "threads at the first use after the fork."});
    finding.fixes.push_back({"Use posix_spawn() where the child is another program: posix_spawn() calls no handlers."});
    finding.fixes.push_back({"Fork before the library is used, or while none of its threads is at work."});
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
