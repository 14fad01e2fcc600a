// Pools that a fork left behind, for the rules about them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diagnose/evidence.hpp"

namespace forksight::pools {

// A child that sleeps for good, and touched nothing that explains it: what it waits for was to come from a thread that
// it does not have.
struct LostWait {
  const model::Fork* fork;  // that left the threads behind
  model::ProcessId child;
  const model::Touch* wait;  // the futex wait that it was seen to begin; null if none was
};
// `findings`: what the rules so far have found; they may explain a wait, too.
std::vector<LostWait> find_lost_waits(const Evidence& evidence, const std::vector<Finding>& findings);
// How certain such a wait is for ever, and what comes of it.
void set_certainty(const model::Process& child, Finding& finding);

// The subject of "... was forked": "It", or the ancestor whose fork left the threads behind.
std::string forked_one(const Evidence& evidence, const LostWait& wait);

// By the condition variables that the lost threads wait for; threads that wait for none are not counted.
std::size_t count_pools(const model::Fork& fork);

// The pool that such a child waits for: that of the library which it waits in, or the only one that was lost. Null
// where there are several, or threads that are no pool.
const model::ThreadPool* find_pool(const model::Model& model, const LostWait& wait);

// The OpenMP runtimes of LLVM and Intel make their pools anew by a fork handler in the child. This one did not run, or
// is off: the child's only thread sleeps in the runtime itself, for threads that the child does not have. Else null.
const model::ThreadPool* find_openmp_pool(const Evidence& evidence, const LostWait& wait);

// "FFTW pool of 3 threads", "pool of 2 std::threads"
std::string pool_name(const model::ThreadPool& pool);
// The lost threads by number and owner, and what they waited for: the first few.
// "It was forked at app.c:12 from process 4240, which had 2 threads more: thread 4241, thread 4242."
std::string tell_loss(const Evidence& evidence, const LostWait& wait);
std::string name_threads(const model::Model& model, const model::Fork& fork);

// The BLAS library whose own lock a touch is about: such a touch is told with the pool. "" for all others.
std::string_view find_blas_library(const model::Model& model, const model::Touch& touch);

}  // namespace forksight::pools
