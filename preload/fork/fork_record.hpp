#pragma once

#include "record/fork_in_progress.hpp"

namespace forksight {

// Writes the kFork record: where fork was called, all threads, and what the participants have prepared.
void append_fork_record(Fork& fork);
// Writes the kForked record, which has the result of the fork. `child`: the return value of the fork. `error`: the
// errno of the fork. Writes nothing if the fork has no kFork record.
void append_forked(const Fork& fork, long child, int error);

}  // namespace forksight
