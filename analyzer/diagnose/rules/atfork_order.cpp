// The prepare handlers of a fork take locks in another order than the program's threads do. Prepare handlers run in the
// reverse order of their registration. Because of this order, the handlers close a ring of waits with the program's
// threads. The proof has three parts: the wait of the handler's thread, the wait of the thread that holds the awaited
// lock, and the shim's record of the locks that earlier handlers took.
#include <fmt/core.h>

#include "diagnose/handlers.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

void atfork_order(const Evidence& evidence, FindingList& findings) {
  for (const model::HandlerRun& run : evidence.model().handler_runs) {
    const auto end = handlers::find_end(evidence, run);
    const auto inversion = end ? handlers::find_inversion(evidence, run) : std::nullopt;
    if (!inversion) continue;
    Finding finding = handlers::describe("atfork-order", evidence, run, *end, nullptr);
    if (inversion->is_of_locks) {
      finding.harm = Certainty::kProven;
      finding.cause = Certainty::kProven;
      finding.outcome = Outcome::kHang;
    }
    const std::string other =
        fmt::format("thread {}{}", inversion->wait->tid, words::name_in_quotes(inversion->wait->name));
    const std::string lock = handlers::name(*inversion->hold);
    const std::string taker = inversion->taken_by ? handlers::name(evidence.model(), *inversion->taken_by, run.phase)
                                                  : std::string("another prepare handler");
    finding.summary += fmt::format("; {} waits for {}, which {} has taken", other, lock, taker);
    add_sentence(finding, fmt::format("Before this handler, {} took {}{}.", taker, lock,
                                      words::at(" at ", inversion->hold->taken_at)));
    add_sentence(
        finding,
        fmt::format("That lock is what {} waits for{}: each of the two threads holds a lock that the other one needs. "
                    "fork() calls the prepare handlers before it makes the child, so there is no child yet.",
                    other, words::at(" at ", inversion->wait->stack)));
    finding.fixes.push_back(
        {"Register the handlers in the order in which the locks are taken elsewhere: prepare "
         "handlers are called last registered first, so the lock that is taken first belongs to the "
         "handler that is registered last."});
    finding.fixes.push_back(
        {"Or let the other threads take these locks in the order of the handlers; or take both in one "
         "handler."});
    finding.fixes.push_back(
        {"Use posix_spawn() or vfork() and exec where the child is another program: these functions call no "
         "handlers."});
    findings.push_back(std::move(finding));
  }
}

}  // namespace forksight::rules
