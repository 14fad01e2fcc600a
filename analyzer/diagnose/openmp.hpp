// Shared by the rules about libgomp's pools.
#pragma once

#include <string>
#include <string_view>

#include "diagnose/evidence.hpp"

namespace forksight::openmp {

// Returns the libgomp pool of a touch; null if the touch is not about a broken pool. A pool is broken if the child has
// lost the pool, or if the child was forked inside of one of the pool's regions. A touch that only a cure made harmless
// counts, too.
const model::Pool* find_lost_pool(const model::Model& model, const model::Touch& touch);

// Returns another OpenMP runtime of the same process that makes its pool anew in the child; null if there is none.
const model::Pool* find_other_runtime(const model::Model& model, const model::Fork& fork);

// True if the fork happened inside of a region whose team has more than one thread.
bool is_team_in_region(const model::Pool& pool);

Culprit describe_pool(const Evidence& evidence, const model::Pool& pool);

// Names the parallel region of the touch: "#pragma omp parallel (app.c:31)".
std::string region(const model::Touch& touch);
// Returns "a parallel region for 4 threads". If the number is not known, returns "a parallel region".
std::string size(const model::Touch& touch);
// Returns the number of threads that the pool had before any cure. The forking thread does not count.
std::uint32_t workers(const model::Pool& pool);
// Returns a name such as "libgomp pool of 4 threads". The number includes the forking thread.
std::string pool_name(const model::Pool& pool);
// Returns the option that selects this cure, such as "--omp=rebuild".
std::string_view option(model::CureMethod method);
std::string_view method_name(model::CureMethod method);

// Adds advice on how to avoid the fork or the pool in this process.
void add_general_fixes(Finding& finding, const model::Process& process);
// Adds the advice to use an OpenMP runtime that notices a fork. The process must hang in libgomp.
void add_other_runtime(Finding& finding);

}  // namespace forksight::openmp
