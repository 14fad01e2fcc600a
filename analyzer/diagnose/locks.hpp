// What the rules about locks share. Each of them has its own evidence, certainty and words.
#pragma once

#include <string>

#include "diagnose/evidence.hpp"

namespace forksight::locks {

struct Orphan {
  const model::Held& held;
  const model::Lock& lock;
  const model::Thread& holder;
  const model::Fork& fork;  // that the holder was lost by, or that it called
  // The thread that took the lock, if it forked with it and `holder` is its copy in the forked process.
  const model::Thread* taker = nullptr;
};

// The lock of a touch, held at the fork by a thread that the child does not have; but nullopt where another rule tells
// of it: with the atfork handler that the child is in, with the BLAS library or the queue whose lock it is.
std::optional<Orphan> find_orphan(const Evidence& evidence, const model::Touch& touch);
// The condition variable or barrier of a touch, with the first of the threads that waited there at the fork.
std::optional<Orphan> find_awaited(const Evidence& evidence, const model::Touch& touch);
// The same whoever tells of it.
std::optional<Orphan> find_any_orphan(const Evidence& evidence, const model::Touch& touch);
// The lock of a touch, held at the fork by the thread that forked.
std::optional<Orphan> find_own(const Evidence& evidence, const model::Touch& touch);

// What became of the call; nullopt: nothing that harmed.
struct End {
  Certainty harm = Certainty::kProven;
  Outcome outcome = Outcome::kHang;
};
std::optional<End> find_end(const Evidence& evidence, const model::Touch& touch);

Culprit describe_lock(const Evidence& evidence, const Orphan& orphan);

// "cache_mu", "a Python lock (semaphore at 0x55d0c0)"
std::string name(const model::Touch& touch, const model::Lock& lock);
// "child 4242 hangs locking cache_mu (app.c:31)", for each outcome.
std::string head(const Evidence& evidence, const model::Touch& touch, const model::Lock& lock, const End& end,
                 const char* verb);
// "thread 4240 "worker" took it at app.c:12 and was left behind by fork() at app.c:20"
std::string cause(const Evidence& evidence, const model::Touch& touch, const Orphan& orphan);

// Why it is not known who has it.
std::string doubts(const Orphan& orphan);

// The chain of an orphaned lock. `nature` says why this kind of lock does not come free by itself.
void tell(const Evidence& evidence, const model::Touch& touch, const Orphan& orphan, const End& end, const char* verb,
          std::string nature, Finding& finding);
// Holders beyond the first, of a barrier or condition variable: "thread 4240 \"worker\" and 3 more".
std::string name_waiters(const Orphan& orphan);

void add_fixes(const model::Process& process, const model::Touch& touch, const Orphan& orphan, const char* reset,
               Finding& finding);

}  // namespace forksight::locks
