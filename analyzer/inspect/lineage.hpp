// Whom a number in a forked process' memory means. A lock keeps the number of the thread that took it: that of a
// parent's thread, or of a grandparent's, of which the process' own first thread may be a copy.
#pragma once

#include <cstdint>

#include "inspect/scene.hpp"

namespace forksight::inspect {

enum class Fate {
  kUnknown,  // it has ended, or is a thread of an ancestor that cannot be looked at
  kSelf,     // the process' first thread: a copy of the one that forked it, or of one that that is a copy of
  kLost,     // a thread of an ancestor that a fork left behind
};
struct Namesake {
  Fate fate = Fate::kUnknown;
  model::ThreadId thread = 0;  // the ancestor's
  model::ForkId fork = 0;      // kLost: that left it behind
};

// `number` is that of no thread of its own. All forks of the scene are known.
Namesake find_namesake(const Scene& scene, std::size_t subject, std::int32_t number);

// In the waits of a process: a plain mutex that its first thread has from before the fork is that thread's.
void name_inherited_owners(Scene& scene, std::size_t subject);

// No thread was lost by its fork or by one before it, as far as the parents and its own memory tell.
bool has_lost_none(const Scene& scene, std::size_t subject);

// The owner, who is not known, may be a thread of the child's own: of another number, or one that has ended.
bool may_be_own(Scene& scene, std::size_t child, std::int32_t owner, const model::Fork& fork);

// Whether its memory shows that it never had another thread, where that is asked for.
void note_lone(Scene& scene, std::size_t subject);

}  // namespace forksight::inspect
