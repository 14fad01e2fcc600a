// The parts of build_model, one file each: threads (builder.cpp), what a fork left behind (lost_objects.cpp), atfork
// handlers that do not return (stuck_handlers.cpp), waits of its threads for each other (own_waits.cpp).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "image/stacks.hpp"
#include "inspect/build_model.hpp"
#include "inspect/python/python_frames.hpp"
#include "inspect/stuck_call.hpp"

namespace forksight::inspect {

// One thread as far as it was looked at.
struct ThreadFacts {
  model::ThreadId id = 0;
  model::Stack stack;  // whole; empty: not known
  StuckCall call;
};

class Builder {
 public:
  Builder(const std::vector<Subject>& subjects, model::Model& model, std::vector<PythonLocals>* locals)
      : subjects_(subjects), model_(model), locals_(locals) {}
  void build();

 private:
  void add_process(std::size_t subject);
  bool is_stuck(std::size_t subject) const;
  bool is_stuck_alone(std::size_t subject, std::int32_t tid) const;
  bool is_of_interest(std::size_t subject) const;
  void add_threads(std::size_t subject);

  // One fork a child, inferred.
  std::optional<model::ForkId> add_fork(std::size_t child);
  // The threads of a parent that is not there, as the child's memory has them.
  void add_threads_of_absent(model::Fork& fork);
  void note_signal_handler(model::Fork& fork) const;
  void note_signal_waits(const image::Image& parent, model::Fork& fork) const;
  void add_pools(model::Fork& fork);
  bool is_in_lost_pool(const StuckCall& call, const model::Fork& fork) const;
  bool is_in_region(std::size_t child, const model::Fork& fork) const;
  void add_other_runtimes(std::size_t child, model::Fork& fork);
  std::string find_runtime_of_blas(std::size_t child, const StuckCall& call, const model::Fork& fork) const;
  bool note_stream(std::size_t child, const StuckCall& call, model::Fork& fork);
  void explain_all(std::size_t subject, std::optional<model::ForkId> fork);
  void explain(std::size_t subject, const image::Thread& thread, model::ForkId fork);
  // Waits among the threads of one process (own_waits.cpp).
  std::int32_t find_own_holder(std::size_t subject, const StuckCall& call) const;
  bool has_own_deadlock(std::size_t subject) const;
  bool is_guess(const model::Touch& touch) const;
  void settle_touches(std::size_t subject, std::size_t first_touch);
  void drop_repeated(std::size_t first_touch);
  std::optional<model::Held> lost_object(std::size_t child, const StuckCall& call, const model::Fork& fork);
  std::optional<model::Held> lost_lock(std::size_t child, const StuckCall& call, const model::Fork& fork);
  std::optional<model::Held> lost_waiters(std::size_t child, const StuckCall& call, const model::Fork& fork);
  std::optional<model::Held> lost_initialiser(std::size_t child, const StuckCall& call, const model::Fork& fork);
  std::optional<model::ThreadId> find_only(const model::Fork& fork,
                                           const std::function<bool(const model::Thread&)>& is_it) const;
  // Of functions of libc (lost_libc_calls.cpp).
  StuckCall find_call_in_flight(std::size_t subject, std::int32_t tid, const StuckCall& waiting);
  void touch_libc_call(model::Touch touch, const StuckCall& call, model::Fork& fork);
  void touch_region(model::Touch touch, const StuckCall& call, model::Fork& fork);
  model::LockId add_lock(std::size_t subject, std::uint64_t address, model::LockKind kind);
  std::optional<model::ThreadId> find_owner(std::size_t child, std::int32_t tid, const model::Fork& fork) const;

  void find_ended_owner(std::size_t subject, const image::Thread& thread);
  void read_python(std::size_t subject);
  void splice_lines(std::size_t subject, const std::vector<PythonThread>& threads, model::Wait& wait) const;
  static void note_python(const image::Thread& thread, const std::vector<PythonThread>& threads, StuckCall& call);
  void add_stuck_handler(std::size_t subject, const image::Thread& thread, std::optional<model::ForkId> fork);

  CalleeOf callee_of(std::size_t subject);
  bool name_data(std::size_t subject, std::uint64_t address, std::string& name, std::string& module);
  image::Stacks& stacks_of(std::size_t subject);
  // Of a thread that the process does not have: nothing.
  const ThreadFacts& facts_of(std::size_t subject, std::int32_t tid) const;
  // A thread of which no more is known than that it was there.
  model::ThreadId unknown_thread(model::ProcessId process);
  // The same, unless there is only one that it can be.
  model::ThreadId other_thread(const model::Fork& fork);
  model::ThreadId add_lost_owner(std::int32_t tid, const model::Fork& fork);
  // The forking thread may be the owner: its tid is not known.
  bool may_be_forking_thread(std::size_t child, std::int32_t owner, const model::Fork& fork) const;

  const std::vector<Subject>& subjects_;
  model::Model& model_;
  std::vector<PythonLocals>* locals_;  // null: nobody asks for them
  std::map<std::size_t, std::unique_ptr<image::Stacks>> stacks_;
  std::map<std::size_t, std::vector<PythonThread>> threads_of_python_;
  std::map<std::pair<std::size_t, std::int32_t>, ThreadFacts> facts_;  // by subject and tid
  std::map<std::size_t, model::ThreadId> only_lost_;                   // by absent subject, where only one was lost
};

}  // namespace forksight::inspect
