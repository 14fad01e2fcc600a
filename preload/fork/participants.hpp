// The steps of a fork. Each function calls all participants whose row in participants.def has the step.
#pragma once

#include "record/fork_in_progress.hpp"

namespace forksight {

// Takes the step kTells: true if some participant has something to record about a fork that the calling thread is about
// to make.
bool tell_of_fork();
// Takes the step kCounts.
void count_fork();
template <ForkStep step>
void take_step(Fork& fork);
// Takes the step kStartsAny. `record`: ref to the fork's record; 0: the fork was not recorded.
void start_copies_in_child(std::uint64_t record);

}  // namespace forksight
