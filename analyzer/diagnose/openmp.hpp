// What the two rules about libgomp's pools share.
#pragma once

#include <string>
#include <string_view>

#include "diagnose/evidence.hpp"

namespace forksight::openmp {

// A touch of a libgomp pool that this child has lost, or of a region that it was forked inside of; else null.
const model::Pool* find_lost_pool(const model::Model& model, const model::Touch& touch);

// A runtime of the same process that makes its pool anew in the child; null if there is none.
const model::Pool* find_other_runtime(const model::Model& model, const model::Fork& fork);

// The fork was made inside of a region of a team that really has other threads.
bool is_team_in_region(const model::Pool& pool);

Culprit describe_pool(const Evidence& evidence, const model::Pool& pool);

// "#pragma omp parallel (app.c:31)"
std::string region(const model::Touch& touch);
// "a parallel region for 4 threads"; without a number where it is not known.
std::string size(const model::Touch& touch);
// Threads of the pool but for the one that forked, before any cure.
std::uint32_t workers(const model::Pool& pool);
// "libgomp pool of 4 threads"
std::string pool_name(const model::Pool& pool);
// "--omp=rebuild"
std::string_view option(model::CureMethod method);
std::string_view method_name(model::CureMethod method);

// Ways to do without fork or without a pool, for this process.
void add_general_fixes(Finding& finding, const model::Process& process);
// For one that hangs on libgomp: the runtime that notices a fork.
void add_other_runtime(Finding& finding);

}  // namespace forksight::openmp
