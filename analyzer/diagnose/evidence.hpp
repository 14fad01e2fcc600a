// Answers what several rules ask about a touch and about the process that made the touch.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "diagnose/cycle.hpp"
#include "diagnose/finding.hpp"
#include "diagnose/lock_orders.hpp"
#include "diagnose/rule_clock.hpp"
#include "model/model.hpp"

namespace forksight {

// A model together with the look-ups that many rules need. The model and the clock must outlive the Evidence. The
// look-ups throw RuleTookTooLong if the rule that calls them has used up its time.
class Evidence {
 public:
  Evidence(const model::Model& model, RuleClock& clock);

  const model::Model& model() const { return model_; }
  // Called by a rule in each round of a loop that may be long and makes few findings.
  void check_time() const { clock_.check(); }
  // The rings of threads that wait for each other (wait_cycles.hpp).
  const std::vector<cycles::Cycle>& cycles() const { return cycles_.found; }
  // A ring, and the index of one of its links.
  struct PlaceInRing {
    const cycles::Cycle* ring = nullptr;
    std::size_t index = 0;
  };
  // Returns the links of rings in which the thread waits, in the order of cycles().
  std::span<const PlaceInRing> places_in_rings(model::ProcessId id, std::int32_t tid) const;
  // False: there were too many waits to search all of them for rings.
  bool has_all_cycles() const { return cycles_.is_complete; }
  // The rings of locks that threads took in opposite orders (lock_orders.hpp).
  const orders::Rings& lock_rings() const { return lock_rings_; }
  const model::Process& process(model::ProcessId id) const { return model_.processes[id]; }
  const model::Fork& fork(const model::Touch& touch) const { return model_.forks[touch.fork]; }
  // Returns the name of the process in sentences, such as "child 4242".
  std::string name(model::ProcessId id) const;

  // Returns how certain it is that the call of this touch never returns. nullopt: the call returned or was cured, or
  // nothing shows that it hung. The caller must have checked that calls of this kind never return.
  std::optional<Certainty> find_hang(const model::Touch& touch) const;
  // True if `run` watched this process, and the process ended before `run` saw it hang, but `run` did not end it. False
  // if there was no run. Also false if the kernel did not let forksight look at the process.
  bool ended_unseen(model::ProcessId id) const;
  // Answers the same for the process of this touch, except for four kinds of calls. For these the result is false,
  // because the call alone is enough evidence: a call with a deadline, a wait for a lost timer, a libc call that takes
  // a lock which a lost thread may have held, and a call in which libc ends the process.
  bool ended_unseen(const model::Touch& touch) const;
  // Returns how certain it is that the object of this touch and its holder are the cause. The result is less than
  // proven if the holder is a guess, or if the object may serve another purpose.
  Certainty find_cause(const model::Touch& touch) const;

  // Returns the child of this fork, if the child went on without exec and is not stuck in a recorded touch; else null.
  const model::Process* find_untouched_child(const model::Fork& fork) const;
  // Returns the last futex wait of the process that has not returned; null if there is none.
  const model::Touch* find_open_wait(model::ProcessId id) const;
  bool has_open_hazard(model::ProcessId id) const { return has_open_hazard_[id]; }

  // Without these two functions, a rule would have to search all forks or all processes, and there may be hundreds of
  // thousands of them. The first function returns the forks whose child is this process: one, if the traces are not
  // damaged. The second function returns the processes with this pid, on any host. Both lists are in the order of the
  // model.
  std::span<const model::ForkId> forks_that_made(model::ProcessId id) const {
    clock_.check();
    return forks_by_child_[id];
  }
  std::span<const model::ProcessId> processes_with_pid(std::int32_t pid) const;

  // Returns how the thread was seen to wait from outside; null if it was not seen.
  const model::Wait* find_wait(model::ProcessId id, std::int32_t tid) const;
  // Returns a sentence about what was seen of the process from outside; "" if nothing was seen. The process must belong
  // to the model. A process may have as many findings as threads, so the sentence is made only once.
  const std::string& describe_liveness(const model::Process& process) const;

  // Returns the outermost atfork handler in which the touching thread blocks. The finding about that handler then
  // reports the touch. Returns null in these cases: the thread is in no handler, or the call returned, was cured, has a
  // deadline, or was changed by --on-orphan.
  const model::HandlerRun* find_handler(const model::Touch& touch) const;
  // True if a thread of the process is in an atfork handler. Then the finding about the handler reports the hang.
  bool is_in_handler(model::ProcessId id) const { return is_in_handler_[id]; }

  // Returns a finding with only what all findings about a touch have in common: process, thread, stack and fork.
  Finding begin_finding(const char* slug, const model::Touch& touch) const;
  // Does the same for a child without a recorded touch. The fork must have a child.
  Finding begin_finding(const char* slug, const model::Fork& fork) const;
  // Does the same for a thread that forksight saw waiting from outside. This finding has no fork.
  static Finding begin_finding(const char* slug, model::ProcessId id, const model::Wait& wait);
  ForkSite fork_site(const model::Fork& fork) const;
  Holder holder(const model::Thread& thread) const;

 private:
  bool is_guess(const model::Touch& touch) const;
  bool has_unknown_holder(const model::Touch& touch) const;
  bool has_other_readers(const model::Touch& touch) const;
  bool may_be_copied_holder(const model::Fork& at, const model::Held& held) const;
  bool may_have_no_poster(const model::Touch& touch) const;
  bool may_be_interrupted(const model::Touch& touch) const;
  // True if the thread was seen to do something later. This shows that the call returned, although no record says so.
  bool did_return(const model::Touch& touch) const;

  // Who held a lock at a fork.
  struct Readers {
    bool has_forking_thread = false;
    std::uint32_t others = 0;
  };
  using ReadersByAddress = std::unordered_map<std::uint64_t, Readers>;

  const model::Model& model_;
  RuleClock& clock_;
  cycles::Cycles cycles_;
  orders::Rings lock_rings_;
  using ThreadKey = std::pair<model::ProcessId, std::int32_t>;  // the number is the tid
  std::vector<bool> has_open_hazard_;                           // indexed by process
  std::vector<bool> is_in_handler_;                             // indexed by process
  std::map<ThreadKey, const model::Wait*> waits_;
  mutable std::unordered_map<const model::Process*, std::string> liveness_;  // the sentences made so far
  std::map<ThreadKey, std::vector<PlaceInRing>> places_in_rings_;
  mutable std::unordered_map<const model::Fork*, ReadersByAddress> readers_;  // the forks that were asked about so far
  std::map<ThreadKey, std::uint64_t> last_act_;
  std::map<ThreadKey, std::uint64_t> last_open_;            // when the thread's last open hazard began
  std::map<ThreadKey, const model::HandlerRun*> handlers_;  // the outermost handler that the thread is in
  std::map<model::ProcessId, const model::Touch*> open_waits_;
  std::vector<std::vector<model::ForkId>> forks_by_child_;  // indexed by process
  std::unordered_map<std::int32_t, std::vector<model::ProcessId>> processes_by_pid_;
};

// True if the call did not return, was not cured, and waits neither in a futex nor for a lock of Python that serves as
// a signal. If the process of such a call is stuck, it is stuck in that call.
bool is_open_hazard(const model::Touch& touch);
// True if an examination of the process from outside has proved that no task can wake it.
bool is_proven_dead(const model::Process& process);
// True if the process is proven dead, and one of its threads waits in a futex.
bool is_dead_in_futex(const model::Process& process);
// True if forksight can name something that could still end the wait of `process`, or the wait of another process for
// which `process` waits.
bool has_way_out(const model::Process& process);
// Sets the verdict "a possible hang that may be intended". Use this verdict if the process has a way out and only its
// wait suggests a hang. diagnose() drops such a finding, because an idle program looks the same as a hanging one.
void set_may_be_intended(Finding& finding);
// True if the process is proven dead and not even a signal handler could wake it.
bool no_signal_can_wake(const model::Process& process);
bool has_ended(const model::Process& process);

// Returns "hangs", or "hung" for a process that has ended.
std::string_view hangs(const model::Process& process);
// Returns how the process ended, such as "It was ended by signal 9 (SIGKILL).". Returns "" if the process has not
// ended, or has exited with status 0.
std::string describe_end(const model::Process& process);

// Appends the sentence to the finding, unless the sentence is empty.
void add_sentence(Finding& finding, std::string sentence);

}  // namespace forksight
