// What the model says about one touch and the process that made it, asked by several rules.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"

namespace forksight {

// A model, and what is asked of it again and again. The model must outlive it.
class Evidence {
 public:
  explicit Evidence(const model::Model& model);

  const model::Model& model() const { return model_; }
  const model::Process& process(model::ProcessId id) const { return model_.processes[id]; }
  const model::Fork& fork(const model::Touch& touch) const { return model_.forks[touch.fork]; }
  // "child 4242"
  std::string name(model::ProcessId id) const;

  // How certain it is that the call of this touch never comes back; nullopt: it came back. For touches whose mechanism
  // always hangs.
  std::optional<Certainty> find_hang(const model::Touch& touch) const;
  // `run` watched this process, and it was over before it was seen to hang. False without a run, and where the kernel
  // refused every look at it.
  bool ended_unseen(model::ProcessId id) const;
  // The same for the call of this touch, unless that call is enough: it has a deadline, it waits for a lost timer, or
  // libc ends the process in it.
  bool ended_unseen(const model::Touch& touch) const;
  // How certain it is that this touch is why: who held the object may be a guess.
  Certainty find_cause(const model::Touch& touch) const;

  // The child of this fork, if it went on without exec and is stuck in nothing that it was seen to touch; else null.
  const model::Process* find_untouched_child(const model::Fork& fork) const;
  // The last futex wait of the process that did not come back; null if there is none.
  const model::Touch* find_open_wait(model::ProcessId id) const;
  bool has_open_hazard(model::ProcessId id) const { return has_open_hazard_[id]; }

  // The atfork handler that the touching thread was in the middle of when it blocked: what it touched is told with the
  // handler. Null if it was in none, or if the touch ended.
  const model::HandlerRun* find_handler(const model::Touch& touch) const;
  // A process that is in the middle of a handler: its hang is told with that.
  bool is_in_handler(model::ProcessId id) const { return is_in_handler_[id]; }

  // What all findings about a touch have in common: process, thread, stack, fork.
  Finding begin_finding(const char* slug, const model::Touch& touch) const;
  // The same for a child that touched nothing that is known. The fork must have a child.
  Finding begin_finding(const char* slug, const model::Fork& fork) const;
  // What a thread waits for, as seen from outside.
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
  // The thread was seen to do something later, so the call came back although nothing says so.
  bool went_on_after(const model::Touch& touch) const;

  const model::Model& model_;
  using ThreadKey = std::pair<model::ProcessId, std::int32_t>;  // with the tid
  std::vector<bool> is_forked_;                                 // by process, as the next two
  std::vector<bool> has_open_hazard_;
  std::vector<bool> is_in_handler_;
  std::map<ThreadKey, std::uint64_t> last_act_;
  std::map<ThreadKey, std::uint64_t> last_open_;            // the same, of what did not come back
  std::map<ThreadKey, const model::HandlerRun*> handlers_;  // the outermost
  std::map<model::ProcessId, const model::Touch*> open_waits_;
};

// The call did not come back and harms by itself: it is what its process is stuck in, if that is stuck.
bool is_open_hazard(const model::Touch& touch);
// Proved by looking at the process from outside that no task can wake it.
bool is_proven_dead(const model::Process& process);
// And one of its threads waits in a futex.
bool is_dead_in_futex(const model::Process& process);
// Something that is named could still end its wait, or that of one whom it waits for.
bool has_way_out(const model::Process& process);
// The verdict on a hang for which nothing but the wait speaks, of a process with a way out: an idle program looks the
// same.
void set_may_be_meant(Finding& finding);
// Proved dead, and no signal handler could wake it either.
bool is_beyond_signals(const model::Process& process);
bool has_ended(const model::Process& process);

// "hangs", or "hung" of a process that has ended.
std::string_view hangs(const model::Process& process);
// One sentence with what was seen from outside; "" if nothing was.
std::string describe_liveness(const model::Process& process);
// How it ended, if that tells: "It was ended by signal 9 (SIGKILL)."; else "".
std::string describe_end(const model::Process& process);

// Appends the sentence unless it is empty.
void add_sentence(Finding& finding, std::string sentence);

}  // namespace forksight
