// Finds the thread to which a thread id in the memory of a forked process refers. A lock keeps the id of the thread
// that took the lock. This thread may belong to the parent or to an earlier ancestor. The first thread of the process
// itself may be a copy of this thread.
#pragma once

#include <cstdint>

#include "inspect/scene.hpp"

namespace forksight::inspect {

enum class Ancestry {
  kUnknown,  // the thread has ended, or belongs to an ancestor that cannot be examined
  kSelf,     // the first thread of the process: a copy, or the copy of a copy, of the thread with that id
  kLost,     // a thread of an ancestor; a fork left that thread behind
};
struct Namesake {
  Ancestry ancestry = Ancestry::kUnknown;
  model::ThreadId thread = 0;  // the thread of the ancestor
  model::ForkId fork = 0;      // kSelf: the fork that this thread called; kLost: the fork that left this thread behind
};

// Finds the thread of an ancestor that had the thread id `number`. Precondition: no thread of the process itself has
// that id, and all forks of the scene have been added.
Namesake find_namesake(const Scene& scene, std::size_t subject, std::int32_t number);

// Corrects the waits of a process for plain mutexes. A plain mutex does not check which thread unlocks the mutex. If
// the first thread of the process has held such a mutex since before the fork, the mutex records the id of an
// ancestor's thread. The corrected wait names the first thread as the owner.
void name_inherited_owners(Scene& scene, std::size_t subject);

// True if neither the fork that made the process nor an earlier fork lost a thread, as far as the parents and the
// memory of the process show.
bool has_lost_none(const Scene& scene, std::size_t subject);

// `owner`: the thread id that a lock records; nothing else is known about the owner. True if the owner may be a thread
// of the child itself: the child's first thread, as the copy of the thread that had this id, or a thread of the child
// that has ended.
bool may_be_own(Scene& scene, std::size_t child, std::int32_t owner, const model::Fork& fork);

// Sets model::Process::never_had_other_threads if the memory of the process shows that the process never had another
// thread. Examines the memory only if a thread of the process waits for a rwlock that names no owner.
void set_never_had_other_threads(Scene& scene, std::size_t subject);

}  // namespace forksight::inspect
