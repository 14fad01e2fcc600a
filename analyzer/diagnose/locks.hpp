// Shared by the rules about locks. Each rule adds its own evidence, certainty and words.
#pragma once

#include <string>

#include "diagnose/evidence.hpp"

namespace forksight::locks {

struct Orphan {
  const model::Held& held;
  const model::Lock& lock;
  const model::Thread& holder;
  // The fork that lost the holder. In the result of find_own(), this is the fork that copied the holder.
  const model::Fork& fork;
  // Null in most cases. If the thread that took the lock later forked, `taker` is that thread, and `holder` is its copy
  // in the forked process.
  const model::Thread* taker = nullptr;
};

// Returns the lock of a touch, if a thread that the child does not have held the lock at the fork. nullopt if another
// rule reports the lock. That is the rule for the atfork handler in which the child is, or the rule for the BLAS
// library or the queue that owns the lock.
std::optional<Orphan> find_orphan(const Evidence& evidence, const model::Touch& touch);
// Returns the condition variable or barrier of a touch. The holder is the first of the threads that waited there at the
// fork.
std::optional<Orphan> find_awaited(const Evidence& evidence, const model::Touch& touch);
// Does the same as find_orphan(), but does not leave out the locks of a BLAS library or a queue. Both leave out a lock
// of Python that serves as a signal: no lost thread had to release it.
std::optional<Orphan> find_any_orphan(const Evidence& evidence, const model::Touch& touch);
// Returns the lock of a touch, if the forking thread held the lock at the fork, and the child still has the copy of
// that thread. nullopt if the finding about an atfork handler reports the lock.
std::optional<Orphan> find_own(const Evidence& evidence, const model::Touch& touch);

// Returns how the call ended or will end; nullopt: the call did no harm.
std::optional<CallEnd> find_end(const Evidence& evidence, const model::Touch& touch);

Culprit describe_lock(const Evidence& evidence, const Orphan& orphan);

// Returns the name of the lock, such as "cache_mu" or "a Python lock (semaphore at 0x55d0c0)".
std::string name(const model::Touch& touch, const model::Lock& lock);
// Returns the beginning of a summary, such as "child 4242 hangs locking cache_mu (app.c:31)". In this example `verb` is
// "locking". `end` decides whether the text says "hangs", "failed", or something else.
std::string head(const Evidence& evidence, const model::Touch& touch, const model::Lock& lock, const CallEnd& end,
                 const char* verb);
// Returns the cause, such as "thread 4240 "worker" took it at app.c:12 and was left behind by fork() at app.c:20".
std::string cause(const Evidence& evidence, const model::Touch& touch, const Orphan& orphan);

// Returns sentences that say why it is not known who holds the lock.
std::string reason_for_doubt(const Orphan& orphan);

// Adds the sentences about an orphaned lock. `nature` says why a lock of this kind does not become free by itself.
void tell(const Evidence& evidence, const model::Touch& touch, const Orphan& orphan, const CallEnd& end,
          const char* verb, std::string nature, Finding& finding);
// Names the threads that wait at a barrier or on a condition variable: "thread 4240 \"worker\" and 3 more".
std::string name_waiters(const Orphan& orphan);

void add_fixes(const model::Process& process, const model::Touch& touch, const Orphan& orphan, const char* reset,
               Finding& finding);

}  // namespace forksight::locks
