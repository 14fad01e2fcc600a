// A thread waits for something that it holds itself. In one case the thread locks a mutex twice, and the mutex is not
// recursive. In the other case the thread waits for a routine of pthread_once() that it is running itself.
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "diagnose/ended_threads.hpp"
#include "diagnose/rules.hpp"
#include "diagnose/wait_cycles.hpp"
#include "diagnose/words.hpp"

namespace forksight::rules {

namespace {

bool is_once(const model::Frame& frame) { return frame.function.find("pthread_once") != std::string::npos; }

// If the thread is running a routine of pthread_once(), returns the frame of this call of pthread_once(); otherwise
// nullopt.
std::optional<std::size_t> find_routine(const model::Stack& stack) {
  const std::size_t user = words::find_user_part(stack).first;
  const auto begin = stack.frames.begin() + static_cast<std::ptrdiff_t>(std::min(user, stack.frames.size()));
  const auto found = std::find_if(begin, stack.frames.end(), is_once);
  if (found == stack.frames.end()) return std::nullopt;
  return static_cast<std::size_t>(found - stack.frames.begin());
}

bool waits_for_once(const model::Wait& wait) {
  const std::size_t user = words::find_user_part(wait.stack).first;
  const auto& frames = wait.stack.frames;
  return wait.is_stuck && wait.kind == model::WaitKind::kFutex && user < frames.size() &&
         std::any_of(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(user), is_once);
}

// True if the thread may be running a routine of pthread_once(). If its stack is not known, it may.
bool may_be_in_routine(const model::Wait& wait) {
  return !has_thread_ended(wait) && (!wait.stack.known() || find_routine(wait.stack));
}

// True if another thread may be running the routine for which this thread waits. There are two such cases. Another
// thread of the process is in such a routine now, or the stack of the other thread is not known. Or the fork that made
// the process left threads behind, and this fork ran no handlers or was not recorded. `in_routines`: how many threads
// of the process may be running a routine.
bool may_be_of_another(const Evidence& evidence, model::ProcessId id, const model::Wait& wait,
                       std::ptrdiff_t in_routines) {
  const model::Model& model = evidence.model();
  bool is_bypassed = false;
  bool has_lost = false;
  for (const model::ForkId made_by : evidence.forks_that_made(id)) {
    const model::Fork& fork = model.forks[made_by];
    is_bypassed = is_bypassed || fork.bypassed || fork.is_inferred;
    has_lost = has_lost || !fork.lost_threads.empty() || fork.unknown_threads > 0;
  }
  if (is_bypassed && has_lost) return true;
  return in_routines > (may_be_in_routine(wait) ? 1 : 0);
}

// pthread_once() records no owner. forksight infers that a thread in pthread_once() waits for itself if the thread is
// also running a routine of pthread_once(), and no other thread is running one.
void find_once(const Evidence& evidence, FindingList& findings) {
  const model::Model& model = evidence.model();
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    const model::Process& process = model.processes[id];
    if (!is_proven_dead(process) || process.is_core) continue;
    std::optional<std::ptrdiff_t> in_routines;
    for (const model::Wait& wait : process.waits) {
      const auto routine = waits_for_once(wait) ? find_routine(wait.stack) : std::nullopt;
      if (routine && !in_routines) in_routines = std::ranges::count_if(process.waits, may_be_in_routine);
      if (!routine || may_be_of_another(evidence, id, wait, *in_routines)) continue;
      model::Stack outer = wait.stack;
      outer.frames.erase(outer.frames.begin(), outer.frames.begin() + static_cast<std::ptrdiff_t>(*routine));
      Finding finding = Evidence::begin_finding("self-deadlock", id, wait);
      finding.harm = no_signal_can_wake(process) ? Certainty::kProven : Certainty::kLikely;
      finding.cause = Certainty::kLikely;
      finding.outcome = no_signal_can_wake(process) ? Outcome::kHang : Outcome::kMayHang;
      finding.culprit.name = wait.object_name.empty() ? "a pthread_once_t" : wait.object_name + " (pthread_once_t)";
      finding.culprit.library = wait.object_module;
      const std::string place = words::place(wait.stack);
      const std::string at = words::at("at ", wait.stack);
      finding.summary =
          fmt::format("{} {} in pthread_once(){}: the thread is inside of such a routine itself{}", evidence.name(id),
                      hangs(process), place.empty() ? place : fmt::format(" ({})", place),
                      words::at(", which it entered at ", outer));
      add_sentence(finding, fmt::format("Thread {} of {} is {}in pthread_once(), until the routine has returned.",
                                        wait.tid, evidence.name(id), at.empty() ? at : at + ", "));
      add_sentence(finding, evidence.describe_liveness(process));
      add_sentence(finding,
                   fmt::format("The same thread is inside of a routine of pthread_once(){}. No other thread of the "
                               "process is inside of one.",
                               words::at(", which it entered at ", outer)));
      add_sentence(finding, "A pthread_once_t records no owner, so it is not proven that both calls use the same one.");
      add_sentence(finding, describe_end(process));
      finding.fixes.push_back({"Let the routine call nothing that calls pthread_once() with the same pthread_once_t."});
      findings.push_back(std::move(finding));
      break;
    }
  }
}

}  // namespace

void self_deadlock(const Evidence& evidence, FindingList& findings) {
  cycles::OtherFindings others(evidence);
  for (const cycles::Cycle& cycle : evidence.cycles()) {
    const bool is_semaphore = cycles::has_via(cycle, model::kViaSemaphoreLock);
    if (cycle.size() != 1 || !(cycles::has_via(cycle, "mutex") || is_semaphore)) continue;
    if (others.explain(cycle, findings)) continue;
    const cycles::Link& link = cycle.front();
    Finding finding = cycles::begin_finding("self-deadlock", evidence, cycle);
    const std::string name = cycles::object(*link.wait);
    const bool is_inherited = link.wait->is_inherited;
    finding.summary = fmt::format("{} locking {}{}: {} holds it already{}", cycles::hanging(evidence, cycle), name,
                                  words::at(" at ", link.wait->stack), cycles::thread(evidence, link, false),
                                  is_inherited ? ", since before its fork" : "");
    finding.culprit = cycles::culprit_lock(evidence, cycle);
    cycles::tell(evidence, cycle, finding);
    add_sentence(finding,
                 is_semaphore
                     ? "The lock is not a multiprocessing.RLock: even its holder must wait until it is released."
                     : "The mutex is not recursive: even its owner must wait until it is unlocked, and only the owner "
                       "may unlock it.");
    if (is_inherited) {
      add_sentence(finding,
                   "The mutex names the id that this thread had in the process that forked: the copy of the thread "
                   "holds the copy of the lock, and the thread did not release the lock before it locked it again.");
      finding.fixes.push_back(
          {fmt::format("In the child, unlock {} before it is locked again: in a pthread_atfork() child handler, or "
                       "right after fork().",
                       name)});
    }
    if (cycles::process_goes_on(evidence, link)) {
      add_sentence(finding,
                   "Another thread could unlock it in place of its owner, as some programs do. POSIX leaves undefined "
                   "what happens then.");
    }
    finding.fixes.push_back(
        {fmt::format("Do not call a function that locks {} while it is held: split off a function that expects it to "
                     "be held, and call that from both places.",
                     name)});
    finding.fixes.push_back(
        {"If a callback or a signal handler locked it again: call the callback after the lock is released."});
    if (is_semaphore) finding.fixes.push_back({"A multiprocessing.RLock may be acquired again by its holder."});
    if (!is_semaphore)
      finding.fixes.push_back(
          {"A recursive mutex (std::recursive_mutex) hides the fault: the data that the lock protects may then be "
           "half-changed."});
    findings.push_back(std::move(finding));
  }
  find_once(evidence, findings);
}

}  // namespace forksight::rules
