// Writes sentences about the CUDA driver.
#pragma once

#include <string>

#include "diagnose/evidence.hpp"
#include "diagnose/finding.hpp"
#include "model/model.hpp"

namespace forksight::cuda {

// Returns the name and number of the result, such as "CUDA_ERROR_NOT_INITIALIZED (3)".
std::string answer(int result);
// Returns the name of the function as users write it: cuMemAlloc, not cuMemAlloc_v2.
std::string plain_name(const model::Touch& touch);
// True for a call that only queries the driver or waits for it. Exit handlers make such calls, too. If such a call
// fails, it does no harm.
bool only_queries(const model::Touch& touch);

Culprit describe_driver(const Evidence& evidence, const model::Fork& fork);
// Returns text such as "cuInit was called at app.c:12"; "CUDA was initialised" if the call of cuInit was not seen.
std::string describe_init(const model::Cuda& cuda);
// Adds sentences that say who initialised the driver, how, and which contexts were active.
void tell_init(const Evidence& evidence, const model::Fork& fork, Finding& finding);
void add_fixes(const model::Process& process, const model::Cuda& cuda, Finding& finding);

}  // namespace forksight::cuda
