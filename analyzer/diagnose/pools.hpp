// Shared by the rules about pools whose threads were lost in a fork.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diagnose/evidence.hpp"

namespace forksight::pools {

// A child sleeps for ever in a futex, and no other operation of the child (model::Touch) explains why. Probably the
// child waits for a thread that a fork did not copy.
struct UnexplainedWait {
  const model::Fork* fork;  // the fork that lost the threads
  model::ProcessId child;
  // The futex wait in which the child sleeps. It is known from a record of the trace, or from an examination of the
  // child. Null if it is not known.
  const model::Touch* wait;
};
// `findings`: what the rules have found so far. A process is left out if one of these findings explains its hang.
std::vector<UnexplainedWait> find_unexplained_waits(const Evidence& evidence, const std::vector<Finding>& findings);
// Sets the finding's outcome, and how certain it is that the unexplained wait of `child` lasts for ever.
void set_certainty(const model::Process& child, Finding& finding);

// Returns the words that begin the sentence "... was forked". The words are "It" if the waiting child was made by the
// fork that lost the threads. Otherwise that fork made an ancestor of the child, and the words name this ancestor.
std::string name_of_forked(const Evidence& evidence, const UnexplainedWait& wait);

// Counts the pools of the lost threads by the condition variables for which the threads wait. Each condition variable
// counts as one pool. A thread that waits for no condition variable does not count.
std::size_t count_pools(const model::Fork& fork);

// Returns the lost pool for which the child waits; null if it is not known. The first of these cases that is true
// decides:
// - The child waits for a lock, and threads are known that may hold the lock: null.
// - The child waits inside a library that has a lost pool: this pool.
// - The child waits for a lock: null.
// - There are several lost pools, or it is not certain that the lost threads are a pool, or another rule reports the
//   pool: null. In this case and in the next one, pools of libgomp are ignored.
// - Otherwise: the only lost pool.
const model::ThreadPool* find_pool(const model::Model& model, const UnexplainedWait& wait);

// Returns the lost pool of an OpenMP runtime of LLVM or Intel, if the child's only thread sleeps in the runtime itself;
// otherwise null. Such a runtime has a fork handler that makes a new pool in the child. If the child sleeps in the
// runtime, there is no new pool: the handler did not run, or it is switched off. So the runtime waits for threads that
// the child does not have.
const model::ThreadPool* find_openmp_pool(const Evidence& evidence, const UnexplainedWait& wait);

// Returns a name such as "FFTW pool of 3 threads" or "pool of 2 std::threads".
std::string pool_name(const model::ThreadPool& pool);
// Returns a sentence such as "It was forked at app.c:12 from process 4240, which had 2 more threads: thread 4241,
// thread 4242." Only the first few threads are named. If it is known what a thread waited for, the sentence says that,
// too.
std::string describe_lost_threads(const Evidence& evidence, const UnexplainedWait& wait);
std::string name_threads(const model::Model& model, const model::Fork& fork);

// Returns the BLAS library that owns the lock of `touch`; "" if there is no such library. The rule lost-blas-pool
// reports a touch of such a lock. So locks::find_orphan() leaves such a touch out.
std::string_view find_blas_library(const model::Model& model, const model::Touch& touch);

}  // namespace forksight::pools
