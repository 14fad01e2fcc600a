// Shared by the rules about pools whose threads a fork left behind.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diagnose/evidence.hpp"

namespace forksight::pools {

// A child that sleeps for ever, although no touch explains why. Probably a thread that the child does not have should
// have ended the wait.
struct UnexplainedWait {
  const model::Fork* fork;  // the fork that left the threads behind
  model::ProcessId child;
  const model::Touch* wait;  // the futex wait that the child was seen to begin; null if there is none
};
// `findings` are those that the rules have made so far. A process that one of these findings explains is left out.
std::vector<UnexplainedWait> find_unexplained_waits(const Evidence& evidence, const std::vector<Finding>& findings);
// Sets the finding's outcome, and how certain it is that an unexplained wait lasts for ever.
void set_certainty(const model::Process& child, Finding& finding);

// The subject of the sentence "... was forked": "It", or the ancestor whose fork left the threads behind.
std::string name_of_forked(const Evidence& evidence, const UnexplainedWait& wait);

// Counts the pools of the lost threads: one for each condition variable for which these threads wait. Threads that wait
// for none are not counted.
std::size_t count_pools(const model::Fork& fork);

// Returns the pool for which the child of an unexplained wait waits: the lost pool of the library in which it waits, or
// else the only lost pool. Null if there are several pools, or lost threads that are not a pool.
const model::ThreadPool* find_pool(const model::Model& model, const UnexplainedWait& wait);

// Returns the lost pool of an OpenMP runtime of LLVM or Intel, if the child's only thread sleeps in the runtime itself;
// else null. Such a runtime makes its pool anew by a fork handler in the child. If the child sleeps in the runtime,
// this handler did not run, or is switched off, and the runtime waits for threads that the child does not have.
const model::ThreadPool* find_openmp_pool(const Evidence& evidence, const UnexplainedWait& wait);

// Returns a name such as "FFTW pool of 3 threads" or "pool of 2 std::threads".
std::string pool_name(const model::ThreadPool& pool);
// Names the first few lost threads with their ids and owners, and says for what they waited: "It was forked at app.c:12
// from process 4240, which had 2 more threads: thread 4241, thread 4242."
std::string describe_lost_threads(const Evidence& evidence, const UnexplainedWait& wait);
std::string name_threads(const model::Model& model, const model::Fork& fork);

// Returns the BLAS library that owns the lock of a touch; "" for all other touches. The finding about the library's
// pool reports such a touch.
std::string_view find_blas_library(const model::Model& model, const model::Touch& touch);

}  // namespace forksight::pools
