// From processes as they are found, alive or in a core, to the model that traces make, too: what a fork left behind is
// inferred from the child's memory and from what its parent's threads are doing now.
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
  std::optional<std::size_t> parent;  // index of the subject that has `ppid`
  bool is_in_vfork = false;           // it has its parent's memory, and a thread of that one waits for it in vfork()
  std::optional<bool> is_forked;      // it is a copy of its parent, and has not called exec; nullopt: not known
  model::Liveness liveness = model::Liveness::kUnknown;
  std::uint64_t stuck_for_ms = 0;
  std::vector<model::Wait> waits;
  std::vector<model::Zombie> zombies;
  bool has_reaped = false;
  bool is_idle =
      false;  // it, or some thread of it, is not stuck: the places where its threads wait are asked for all the same
  std::optional<std::size_t> waits_for;  // index, with kVictim
  std::string waits_via;
  std::uint64_t unheard_signals = 0;  // pending and blocked by all its threads, which are stuck; bit 0 is signal 1
  std::vector<std::string> ways_out;  // as in model::Process
  bool may_be_timed_out = false;      // the same
  bool is_absent = false;    // a parent that is not there to be looked at: no more is known of it than its child tells
  bool is_supposed = false;  // with is_absent: the pid is the one that a core calls its parent's, which is that of
                             // another process if the parent had ended
};

// Gives each stuck fork whose parent is none of the subjects an absent one: of the child's ppid where the child is a
// core or nobody else has it, else of pid 0, which stands for one that has ended.
void add_absent_parents(std::vector<Subject>& subjects);

// What the innermost frame of Python of a thread calls its variables.
struct PythonLocals {
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  model::Frame frame;
  std::vector<std::string> names;  // arguments first
};

// The processes of the model are the subjects, in their order. `locals`: of the threads whose stacks are looked at.
model::Model build_model(const std::vector<Subject>& subjects, std::vector<PythonLocals>* locals = nullptr);

}  // namespace forksight::inspect
