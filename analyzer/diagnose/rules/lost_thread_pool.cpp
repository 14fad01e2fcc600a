// A forked child sleeps for ever. The only threads that could have woken it belong to one pool, which its fork left
// behind. The proof is the same as for lost-wakeup, but here the culprit has a name.
#include <fmt/core.h>

#include <string_view>

#include "diagnose/futex_waits.hpp"
#include "diagnose/pools.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

Finding describe(const Evidence& evidence, const pools::UnexplainedWait& wait, const model::ThreadPool& pool) {
  const model::Model& model = evidence.model();
  const model::Fork& fork = *wait.fork;
  const model::Process& child = evidence.process(wait.child);
  const model::Thread& first = model.threads[pool.threads.front()];
  const model::OwnerInfo& owner = model::info_of(pool.owner);
  Finding finding = wait.wait == nullptr ? evidence.begin_finding("lost-thread-pool", fork)
                                         : evidence.begin_finding("lost-thread-pool", *wait.wait);
  pools::set_certainty(child, finding);
  finding.cause = Certainty::kLikely;
  finding.culprit.kind = CulpritKind::kPool;
  finding.culprit.name = pools::pool_name(pool);
  finding.culprit.library = pool.library;
  finding.culprit.holder = evidence.holder(first);
  finding.culprit.stack = first.created_at;
  std::string made = words::place_outside_of(first.created_at, pool.owner);
  if (made.empty()) made = words::place(first.created_at);
  if (!made.empty()) made = ", made at " + made;
  std::string where = words::place(finding.stack);
  if (!where.empty()) where = fmt::format(" in {} ({})", futex_waits::find_purpose(finding.stack).what, where);
  const char* const but = finding.outcome == Outcome::kMayHang ? "; only a signal handler could wake it" : "";
  finding.summary =
      fmt::format("{} {}{} waiting for its {}{}, which fork(){} did not copy{}", evidence.name(wait.child),
                  hangs(child), where, pools::pool_name(pool), made, words::at(" at ", fork.stack), but);
  add_sentence(finding, evidence.describe_liveness(child));
  add_sentence(finding, pools::describe_lost_threads(evidence, wait));
  add_sentence(finding,
               "The pool's queue was copied, its threads were not: nobody takes the work that the child submits.");
  if (owner.at_fork == model::PoolAtFork::kRebuildsByHandler) {
    add_sentence(finding,
                 fmt::format("{} makes its pool anew by a fork handler in the child, and has registered no such "
                             "handler in this program.",
                             owner.name));
  }
  finding.fixes.push_back({owner.fix});
  if (words::is_python(child)) {
    // The advice in owners.def already names the start methods for some owners.
    if (std::string_view(owner.fix).find("set_start_method") == std::string_view::npos) {
      finding.fixes.push_back(
          {"In Python, start workers with multiprocessing.set_start_method(\"forkserver\") or \"spawn\"."});
    }
  } else {
    finding.fixes.push_back({"Exec right after fork(), or use posix_spawn()."});
  }
  if (!has_ended(child) && !child.is_core) {
    finding.fixes.push_back(
        {fmt::format("See where it waits: gdb -p {} -batch -ex 'thread apply all bt'.", child.pid)});
  }
  return finding;
}

}  // namespace

void lost_thread_pool(const Evidence& evidence, FindingList& findings) {
  for (const pools::UnexplainedWait& wait : pools::find_unexplained_waits(evidence, findings)) {
    const model::ThreadPool* const pool = pools::find_pool(evidence.model(), wait);
    if (pool != nullptr) findings.push_back(describe(evidence, wait, *pool));
  }
}

}  // namespace forksight::rules
