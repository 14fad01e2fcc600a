// A prepare or parent handler (pthread_atfork()) does not return, so fork() never returns in the parent. Usually the
// handler waits for another thread: it wants a lock that the thread holds, or it joins the thread. That thread waits
// for the forking thread.
#include "diagnose/handlers.hpp"
#include "diagnose/rules.hpp"

namespace forksight::rules {

void atfork_handler_stuck(const Evidence& evidence, FindingList& findings) {
  for (const model::HandlerRun& run : evidence.model().handler_runs) {
    if (run.phase == model::HandlerPhase::kChild) continue;
    const auto end = handlers::find_end(evidence, run);
    if (!end || handlers::find_inversion(evidence, run)) continue;  // the rule atfork-order reports it
    Finding finding = handlers::describe("atfork-handler-stuck", evidence, run, *end, nullptr);
    const bool is_prepare = run.phase == model::HandlerPhase::kPrepare;
    add_sentence(finding, is_prepare
                              ? "fork() calls the prepare handlers before it makes the child, so there is no child yet."
                              : "The child was already made, but the parent's fork() has not returned, so the "
                                "parent does not know of the child.");
    const bool joins = !run.waits.empty() && run.waits.back().kind == model::HandlerWaitKind::kJoin;
    if (joins) {
      finding.fixes.push_back(
          {"Do not use the library of this handler in one thread while another thread forks: the handler waits for the "
           "library's threads, and these wait for work in progress."});
    } else {
      finding.fixes.push_back(
          {"Do not call fork() in a thread that holds a lock that a prepare handler takes, or while another thread "
           "holds such a lock and waits for the forking thread."});
    }
    finding.fixes.push_back(
        {"Use posix_spawn() or vfork() and exec where the child is another program: these functions call no "
         "handlers."});
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
