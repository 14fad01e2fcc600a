// A forked child lost threads, and is proven to sleep for ever in a futex. No recorded touch of a lock or pool explains
// the wait. So one of the lost threads may be the thread that should have ended the wait. If the futex call was made
// through syscall(), a touch records the wait. The stack of the touch then shows what the child waits for: a future, an
// atomic, a latch. If the futex call was made inside of libc, it is not known what the child waits for. If the evidence
// is a core and the program may have signal handlers, the rule does not report a wait for a word of the program's own.
#include <fmt/core.h>

#include <algorithm>

#include "diagnose/evidence.hpp"
#include "diagnose/futex_waits.hpp"
#include "diagnose/pools.hpp"
#include "diagnose/python_waits.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

std::string on(const model::Touch& wait) {
  return wait.object_name.empty() ? std::string() : fmt::format(" on {}", wait.object_name);
}

void fill_culprit(const Evidence& evidence, const model::Fork& fork, Finding& finding) {
  const model::Model& model = evidence.model();
  const std::size_t lost = fork.lost_threads.size() + fork.unknown_threads;
  finding.culprit.kind = CulpritKind::kThread;
  finding.culprit.name = words::count(lost, "lost thread", "lost threads");
  if (fork.lost_threads.empty()) return;
  const model::Thread& first = model.threads[fork.lost_threads.front()];
  finding.culprit.holder = evidence.holder(first);
  finding.culprit.library = first.start_library;
  // Every std::thread starts in a function of libstdc++. So only the code that created the thread shows to which
  // library the thread belongs.
  if (const model::Frame* const creator = words::find_user_frame(first.created_at))
    finding.culprit.library = creator->module;
  finding.culprit.stack = first.created_at;
}

std::string summarise(const Evidence& evidence, const pools::UnexplainedWait& suspect, const Finding& finding) {
  const model::Fork& fork = *suspect.fork;
  const std::size_t lost = fork.lost_threads.size() + fork.unknown_threads;
  const bool for_handler = finding.outcome == Outcome::kMayHang;
  const std::string cause =
      fmt::format("possibly because {} of its parent {} not copied by fork(){}",
                  words::count(lost, "thread", "threads"), lost == 1 ? "was" : "were", words::at(" at ", fork.stack));
  const std::string child = evidence.name(suspect.child);
  const std::string_view hang = hangs(evidence.process(suspect.child));
  const char* const waker = for_handler ? "no task can wake, only a signal handler" : "nobody is left to wake";
  if (suspect.wait == nullptr) return fmt::format("{} {} in a futex that {}: {}", child, hang, waker, cause);
  const std::string place = words::place(suspect.wait->stack);
  return fmt::format("{} {} in {}{}{}, which {}: {}", child, hang, futex_waits::find_purpose(suspect.wait->stack).what,
                     on(*suspect.wait), place.empty() ? place : fmt::format(" ({})", place), waker, cause);
}

void tell_wait(const Evidence& evidence, const model::Touch& wait, Finding& finding) {
  const auto purpose = futex_waits::find_purpose(wait.stack);
  const std::string where = words::place_with_function(wait.stack);
  const std::string word =
      wait.object_name.empty() ? fmt::format("at {:#x}", wait.object) : fmt::format("{}", wait.object_name);
  add_sentence(finding,
               fmt::format("Thread {} of {} is {}in {}; it sleeps until the word {} is no longer {:#x}.", wait.tid,
                           evidence.name(wait.process), where.empty() ? where : fmt::format("at {}, ", where),
                           purpose.what, word, wait.value));
  add_sentence(finding, evidence.describe_liveness(evidence.process(wait.process)));
  if (!evidence.process(wait.process).waits.empty()) return;
  add_sentence(finding,
               "When it fell asleep it was the only thread of its process, the word was in memory of its own, and no "
               "signal had a handler: nothing could wake it.");
}

std::string name_referrer(const Evidence& evidence, const model::LockReference& reference) {
  const std::string where = words::place_with_function(reference.stack);
  const model::Thread& thread = evidence.model().threads[reference.thread];
  // The thread ids of the lost threads are not in the child's memory.
  const std::string start =
      thread.start_routine.empty() ? "" : fmt::format(" that started with {}", thread.start_routine);
  return fmt::format("{}{}{}", thread.tid == 0 ? fmt::format("a thread{}", start) : words::thread(thread),
                     reference.is_own ? " of the child itself" : "",
                     where.empty() ? where : fmt::format(", at {}", where));
}

// The sentence claims only what was seen. A thread may have the lock's address on its stack for three reasons: it holds
// the lock, it is about to take the lock, or it passes the address on. The thread that forked may hold the lock, too.
void tell_lock_references(const Evidence& evidence, const model::Touch& wait, Finding& finding) {
  const auto& references = wait.lock_references;
  if (references.empty()) return;
  std::string names;
  for (const model::LockReference& reference : references) {
    names += (names.empty() ? "" : "; ") + name_referrer(evidence, reference);
  }
  const std::size_t more = wait.lock_referrers - std::min<std::size_t>(wait.lock_referrers, references.size());
  if (more > 0) names += fmt::format("; and {} more", more);
  const bool is_one = references.size() == 1 && more == 0;
  add_sentence(
      finding,
      fmt::format("A lock of this kind does not record which thread holds it. The address of the lock is on the "
                  "{}: {}. {}",
                  is_one ? std::string("stack of another thread")
                         : fmt::format("stacks of {} other threads", references.size() + more),
                  names,
                  is_one ? "This thread may hold the lock. It may also only have the lock's address, or have released "
                           "the lock already."
                         : "One of these threads may hold the lock. A thread may also only have the lock's address, or "
                           "have released the lock already."));
}

// True if the word for which the thread waits is no future, condition variable or similar object. A signal handler of
// the program may change such a word, and so end the wait.
bool is_of_own_word(const pools::UnexplainedWait& suspect) {
  return suspect.wait != nullptr && !futex_waits::is_recognised(suspect.wait->stack);
}

bool is_for_lock(const pools::UnexplainedWait& suspect) {
  return suspect.wait != nullptr &&
         (!suspect.wait->lock_references.empty() || futex_waits::find_purpose(suspect.wait->stack).is_lock);
}

// True if it is not known which signals have handlers. A core does not show that.
bool lacks_handlers(const model::Process& process) { return process.is_core && !no_signal_can_wake(process); }

// True if the program may be healthy: it may wait until a signal handler changes a word of the program's own. In a
// core, such a program looks the same as a program that hangs.
bool may_be_healthy(const Evidence& evidence, const pools::UnexplainedWait& suspect) {
  const model::Process& child = evidence.process(suspect.child);
  return is_of_own_word(suspect) && lacks_handlers(child) && !child.sets_no_handlers;
}

Finding describe(const Evidence& evidence, const pools::UnexplainedWait& suspect) {
  const model::Fork& fork = *suspect.fork;
  const model::Process& child = evidence.process(suspect.child);
  Finding finding = suspect.wait == nullptr ? evidence.begin_finding("lost-wakeup", fork)
                                            : evidence.begin_finding("lost-wakeup", *suspect.wait);
  pools::set_certainty(child, finding);
  finding.cause = Certainty::kPossible;
  // Even if the program calls no function of libc that sets handlers, it may set handlers in another way. So a core
  // proves little about a wait for a word of the program's own.
  if (is_of_own_word(suspect) && lacks_handlers(child)) finding.harm = Certainty::kPossible;
  fill_culprit(evidence, fork, finding);
  if (suspect.wait != nullptr && !suspect.wait->lock_references.empty()) {
    finding.culprit.address = suspect.wait->awaited_lock;
  }
  finding.summary = summarise(evidence, suspect, finding);
  if (suspect.wait != nullptr) {
    tell_wait(evidence, *suspect.wait, finding);
  } else {
    add_sentence(finding, evidence.describe_liveness(child));
  }
  add_sentence(finding, pools::describe_lost_threads(evidence, suspect));
  if (const std::size_t number = pools::count_pools(fork); number > 1) {
    add_sentence(finding, fmt::format("The condition variables that these threads wait for show that they are workers "
                                      "of {} pools. It is not known which of the pools the child needs.",
                                      number));
  }
  if (suspect.wait != nullptr) {
    add_sentence(
        finding,
        fmt::format(
            "The child has none of these threads. If {} is one of them, this is why the child hangs. It is not proven.",
            futex_waits::find_purpose(suspect.wait->stack).other_side));
    tell_lock_references(evidence, *suspect.wait, finding);
  } else {
    add_sentence(
        finding,
        "The child has none of these threads. If one of them was to end this wait, this is why the child hangs. "
        "It is not proven.");
    add_sentence(finding,
                 "It is not known which lock, condition or future this is: forksight saw no lock operation of the "
                 "child on a lock held at the fork. It may be a condition variable, a future, or a lock inside of libc "
                 "or of another language.");
  }
  if (python::rewrite_for_python(evidence, fork, finding)) return finding;
  if (!has_ended(child) && !child.is_core && suspect.wait == nullptr) {
    finding.fixes.push_back(
        {fmt::format("See where it waits: gdb -p {} -batch -ex 'thread apply all bt'.", child.pid)});
  }
  if (words::is_python(child)) {
    finding.fixes.push_back(
        {"In Python, start workers with multiprocessing.set_start_method(\"forkserver\") or \"spawn\"."});
  } else {
    finding.fixes.push_back({"Exec right after fork(), or use posix_spawn()."});
  }
  if (is_for_lock(suspect)) {
    finding.fixes.push_back({"Fork before the threads that use this lock are started, or while none of them uses it."});
    return finding;
  }
  finding.fixes.push_back(
      {"Fork before these threads are started, or start them again in the child (pthread_atfork() child handler)."});
  return finding;
}

}  // namespace

void lost_wakeup(const Evidence& evidence, FindingList& findings) {
  for (const pools::UnexplainedWait& wait : pools::find_unexplained_waits(evidence, findings)) {
    const bool has_name = pools::find_pool(evidence.model(), wait) != nullptr;  // the rule lost-thread-pool reports it
    if (!has_name && !may_be_healthy(evidence, wait)) findings.push_back(describe(evidence, wait));
  }
}

}  // namespace forksight::rules
