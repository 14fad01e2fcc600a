// Makes a model from processes that are alive or in a core. The model has the same form as a model that is made from
// traces. The child's memory, and the present state of the parent's threads, show which threads a fork left behind, and
// which locks those threads held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "image/image.hpp"
#include "model/model.hpp"

namespace forksight::inspect {

struct Subject {
  image::Image image;
  std::optional<std::size_t> parent;  // index of the parent's subject; it may be an absent parent
  // the process shares its parent's memory, and a thread of the parent waits in vfork() for this process
  bool is_in_vfork = false;
  std::optional<bool> is_forked;  // the process is a copy of its parent and has not called exec; nullopt: not known
  model::Liveness liveness = model::Liveness::kUnknown;
  std::uint64_t stuck_for_ms = 0;
  std::vector<model::Wait> waits;
  std::vector<model::Zombie> zombies;
  bool has_reaped = false;
  // The process is awake, or only some of its threads are stuck. The stacks of all its threads are read nevertheless.
  bool is_idle = false;
  std::optional<std::size_t> waits_for;  // for kVictim: the index of the subject for which this one waits
  std::string waits_via;
  // Signals that no thread can take. The signals are pending, all threads of the process block the signals, and all of
  // these threads are stuck. Bit 0 is signal 1.
  std::uint64_t unheard_signals = 0;
  std::vector<std::string> ways_out;  // as in model::Process
  bool may_be_timed_out = false;      // as in model::Process
  bool sets_no_handlers = false;      // as in model::Process
  bool is_absent = false;             // a parent that cannot be examined: only its child shows that it existed
  // Only for an absent parent: its pid is the ppid that the child's core records. If the real parent had ended before
  // the core was made, this is the pid of another process.
  bool is_supposed = false;
  bool is_asked_about = true;  // as in model::Process
};

// Adds an absent parent for each stuck forked process whose parent is not among the subjects. The pid of the absent
// parent is the child's ppid. But if another process has adopted the child, the pid of the absent parent is 0. This
// stands for a parent that has ended.
void add_absent_parents(std::vector<Subject>& subjects);

// The names of the variables in a thread's innermost Python frame.
struct PythonLocals {
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  model::Frame frame;
  std::vector<std::string> names;  // arguments first
};

// The subjects become the processes of the model, in the same order. `locals` gets the names of the variables of the
// threads whose stacks are read.
model::Model build_model(const std::vector<Subject>& subjects, std::vector<PythonLocals>* locals = nullptr);
// The same, for a caller that does not need the subjects any more. With very many threads, this takes less memory.
model::Model build_model(std::vector<Subject>&& subjects);

}  // namespace forksight::inspect
