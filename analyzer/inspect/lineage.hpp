// Which thread a number in the memory of a forked process means. A lock keeps the number of the thread that took it.
// That may be a thread of the parent or grandparent, and the process's own first thread may be a copy of it.
#pragma once

#include <cstdint>

#include "inspect/scene.hpp"

namespace forksight::inspect {

enum class Fate {
  kUnknown,  // it has ended, or is a thread of an ancestor that cannot be looked at
  kSelf,     // the first thread of the process: a copy, or the copy of a copy, of the thread with that number
  kLost,     // a thread of an ancestor, which a fork left behind
};
struct Namesake {
  Fate fate = Fate::kUnknown;
  model::ThreadId thread = 0;  // the ancestor's
  model::ForkId fork = 0;      // for kLost: the fork that left it behind
};

// No thread of the process itself has `number`. All forks of the scene must be known.
Namesake find_namesake(const Scene& scene, std::size_t subject, std::int32_t number);

// Corrects the waits of a process: a plain mutex that its first thread has held since before the fork belongs to that
// thread.
void name_inherited_owners(Scene& scene, std::size_t subject);

// Neither its fork nor an earlier one lost a thread, as far as the parents and its own memory show.
bool has_lost_none(const Scene& scene, std::size_t subject);

// The unknown owner may be a thread of the child itself: one with another number, or one that has ended.
bool may_be_own(Scene& scene, std::size_t child, std::int32_t owner, const model::Fork& fork);

// Notes whether its memory shows that it never had another thread, where a rule needs to know that.
void note_lone(Scene& scene, std::size_t subject);

}  // namespace forksight::inspect
