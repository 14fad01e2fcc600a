// libgomp keeps a pool of workers for each thread that ever started a team. fork() copies the data of the forking
// thread's pool into the child, but not the workers. libgomp has no atfork handler. So the next team of two or more
// threads waits at its barrier for threads that do not exist. This is not a race: the child hangs each time. The
// runtimes of LLVM and Intel have a child handler that rebuilds their pools. If that handler does not run, these
// runtimes hang in the same way.
#include <fmt/core.h>

#include "diagnose/openmp.hpp"
#include "diagnose/pools.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

std::string where_made(const model::Pool& pool) {
  const std::string made = words::place(pool.made_at);
  return made.empty() ? std::string() : fmt::format("made at {} and ", made);
}

std::string summarise(const Evidence& evidence, const model::Touch& touch, const model::Pool& pool) {
  const std::string child = evidence.name(touch.process);
  const std::string cause = fmt::format("its {} was {}lost in fork(){}", openmp::pool_name(pool), where_made(pool),
                                        words::at(" at ", evidence.fork(touch).stack));
  if (touch.cured) {
    return fmt::format("{} would have hung in {}; cured by {}: {}", child, openmp::region(touch),
                       openmp::method_name(pool.cure.value_or(model::CureMethod::kRebuild)), cause);
  }
  return fmt::format("{} {} in {}: {}", child, hangs(evidence.process(touch.process)), openmp::region(touch), cause);
}

void tell(const Evidence& evidence, const model::Touch& touch, const model::Pool& pool, Finding& finding) {
  const model::Process& child = evidence.process(touch.process);
  const model::Fork& fork = evidence.fork(touch);
  // If forksight saw the region only from outside, the size of the region is not known.
  const std::string others =
      touch.team == 0 ? std::string("its team") : words::count(touch.team - 1, "other thread", "others");
  if (touch.cured) {
    add_sentence(finding, fmt::format("Thread {} of {} started {}{}.", touch.tid, evidence.name(touch.process),
                                      openmp::size(touch), words::at(" at ", touch.stack)));
  } else {
    add_sentence(finding, fmt::format("Thread {} of {} entered {}{} and has not come out: it waits for {}.", touch.tid,
                                      evidence.name(touch.process), openmp::size(touch), words::at(" at ", touch.stack),
                                      others));
    add_sentence(finding, evidence.describe_liveness(child));
  }
  const std::string workers = openmp::workers(pool) == 0 ? std::string("its size is not known")
                                                         : words::count(openmp::workers(pool), "worker", "workers");
  add_sentence(
      finding,
      fmt::format("The others were to come from the libgomp pool of {}, {} of {}: {}{}.",
                  fork.child == touch.process ? "the thread that forked" : "an ancestor's thread, which forked",
                  words::thread(evidence.model().threads[fork.forking_thread]),
                  words::parent(evidence.process(fork.process)), workers, words::at(", made at ", pool.made_at)));
  add_sentence(
      finding,
      fmt::format(
          "fork(){} copied libgomp's list of these workers, but not the workers: the child began with one thread.",
          words::at(" at ", fork.stack)));
  add_sentence(
      finding,
      "libgomp has no atfork handler, so it does not notice the fork; this hangs each time, not now and then.");
  if (fork.is_inferred) {
    add_sentence(finding,
                 "A fork inside of a parallel region looks the same from outside. If that is what happened, no cure "
                 "helps: move the fork out of the region.");
  }
  if (touch.cured) {
    switch (pool.cure.value_or(model::CureMethod::kRebuild)) {
      case model::CureMethod::kRebuild:
        add_sentence(finding,
                     "forksight reset the child's copy of libgomp's thread state at the fork (rebuild): the region got "
                     "a fresh team of full size.");
        break;
      case model::CureMethod::kQuiesce:
        add_sentence(
            finding,
            "forksight ended the pool before the fork (quiesce): parent and child each made a new one of full size.");
        break;
      case model::CureMethod::kClamp:
        add_sentence(finding, "forksight held the child at one thread (clamp): the region ran, but not in parallel.");
        break;
    }
  } else if (pool.cure && pool.cure_result == model::CureResult::kRefusedByRuntime) {
    add_sentence(finding,
                 pool.cure == model::CureMethod::kClamp
                     ? "forksight could not hold the child at one thread (clamp): the file that contains libgomp also "
                       "contains other code."
                     : "forksight tried to end the pool before the fork (quiesce), but omp_pause_resource_all refused "
                       "or is missing.");
  } else if (pool.cure && pool.cure_result == model::CureResult::kRefusedNoImage) {
    add_sentence(finding,
                 "forksight could not rebuild the pool at this fork: libgomp's thread state was in use or not found.");
  }
  add_sentence(finding, describe_end(child));
}

void add_fixes(const model::Process& process, const model::Touch& touch, const model::Pool& pool, Finding& finding) {
  const bool was_refused = pool.cure && pool.cure_result != model::CureResult::kApplied;
  const bool has_rebuild_failed = was_refused && *pool.cure == model::CureMethod::kRebuild;
  const bool has_quiesce_failed = was_refused && *pool.cure == model::CureMethod::kQuiesce;
  if (touch.cured) {
    finding.fixes.push_back({fmt::format("Keep running under `forksight run {} -- ...`: it cures this at each fork.",
                                         openmp::option(pool.cure.value_or(model::CureMethod::kRebuild))),
                             true});
  } else {
    if (!has_rebuild_failed) {
      finding.fixes.push_back(
          {"Run it under `forksight run --omp=rebuild -- ...`: the child makes a fresh pool of full size, the parent "
           "pays nothing.",
           true});
    }
    if (!has_quiesce_failed) {
      finding.fixes.push_back(
          {"Or `forksight run --omp=quiesce -- ...`: the pool is ended before each fork, by OpenMP's own call (0.1 to "
           "0.4 ms a fork in the parent).",
           true});
    }
    if (has_rebuild_failed || has_quiesce_failed) {
      finding.fixes.push_back(
          {"Or `forksight run --omp=clamp -- ...`: the child runs its regions with one thread.", true});
    }
  }
  finding.fixes.push_back(
      {"In the program: call omp_pause_resource_all(omp_pause_hard) before fork(), outside of parallel regions (gcc 9 "
       "or later)."});
  openmp::add_general_fixes(finding, process);
  openmp::add_other_runtime(finding);
}

// Describes a hang in a runtime of LLVM or Intel. The runtime's child handler should have made the pool anew, but did
// not do so.
Finding describe_unmade(const Evidence& evidence, const pools::UnexplainedWait& wait, const model::ThreadPool& pool) {
  const model::Fork& fork = *wait.fork;
  const model::Process& child = evidence.process(wait.child);
  const std::string_view library = words::base_name(pool.library);
  Finding finding = wait.wait == nullptr ? evidence.begin_finding("lost-openmp-pool", fork)
                                         : evidence.begin_finding("lost-openmp-pool", *wait.wait);
  pools::set_certainty(child, finding);
  finding.cause = Certainty::kLikely;
  finding.culprit.kind = CulpritKind::kPool;
  finding.culprit.name = pools::pool_name(pool);
  finding.culprit.library = pool.library;
  finding.culprit.holder = evidence.holder(evidence.model().threads[pool.threads.front()]);
  finding.culprit.stack = evidence.model().threads[pool.threads.front()].created_at;
  const std::string place = words::place(wait.wait != nullptr ? wait.wait->stack : finding.stack);
  const char* const but = finding.outcome == Outcome::kMayHang ? "; only a signal handler could wake it" : "";
  finding.summary =
      fmt::format("{} {} in an OpenMP parallel region{}: its {} was lost in fork(){}, and {} did not notice{}",
                  evidence.name(wait.child), hangs(child), place.empty() ? place : " (" + place + ")",
                  pools::pool_name(pool), words::at(" at ", fork.stack), library, but);
  add_sentence(finding, evidence.describe_liveness(child));
  add_sentence(finding, pools::describe_lost_threads(evidence, wait));
  add_sentence(finding,
               fmt::format("The child's only thread sleeps in {} itself, which waits for these workers.", library));
  add_sentence(
      finding,
      fork.bypassed
          ? fmt::format("{} makes its pool anew by a fork handler in the child, and this fork called no "
                        "handlers.",
                        library)
          : fmt::format(
                "{} makes its pool anew by a fork handler in the child. It has no such handler if KMP_INIT_AT_FORK was "
                "FALSE when it started; importing scikit-learn sets that. _Fork() and clone() call no handlers.",
                library));
  if (fork.is_inferred) {
    add_sentence(finding, "A fork inside of a parallel region looks the same from outside.");
  }
  if (fork.bypassed) {
    finding.fixes.push_back({"Fork by fork(): _Fork() and clone() call no fork handlers."});
  } else {
    finding.fixes.push_back(
        {"Set KMP_INIT_AT_FORK=TRUE in the environment of the program. scikit-learn sets it to FALSE only where it is "
         "not set."});
  }
  openmp::add_general_fixes(finding, child);
  return finding;
}

}  // namespace

void lost_openmp_pool(const Evidence& evidence, FindingList& findings) {
  for (const model::Touch& touch : evidence.model().touches) {
    const model::Pool* const pool = openmp::find_lost_pool(evidence.model(), touch);
    if (pool == nullptr || pool->in_region) continue;
    const auto hang = evidence.find_hang(touch);
    // The rule atfork-child-stuck reports a touch inside of a handler.
    if (!touch.cured && (!hang || evidence.find_handler(touch) != nullptr)) continue;
    if (!touch.cured && openmp::find_other_runtime(evidence.model(), evidence.fork(touch)) != nullptr)
      continue;  // the rule mixed-openmp-runtimes reports it
    Finding finding = evidence.begin_finding("lost-openmp-pool", touch);
    finding.harm = touch.cured ? Certainty::kProven : *hang;
    finding.cause = evidence.find_cause(touch);
    finding.outcome = touch.cured ? Outcome::kCured : Outcome::kHang;
    finding.culprit = openmp::describe_pool(evidence, *pool);
    finding.summary = summarise(evidence, touch, *pool);
    tell(evidence, touch, *pool, finding);
    add_fixes(evidence.process(touch.process), touch, *pool, finding);
    findings.push_back(std::move(finding));
  }
  for (const pools::UnexplainedWait& wait : pools::find_unexplained_waits(evidence, findings)) {
    const model::ThreadPool* const pool = pools::find_openmp_pool(evidence, wait);
    if (pool != nullptr) findings.push_back(describe_unmade(evidence, wait, *pool));
  }
}

}  // namespace forksight::rules
