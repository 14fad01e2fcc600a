// Whether the traces of a run that is over are worth a folder.
#pragma once

#include "model/model.hpp"
#include "result.hpp"
#include "watch/run_folder.hpp"

namespace forksight {

// Without symbols.
Result<model::Model> load_quickly(const watch::RunFolder& folder);

// Nothing was found in it, and nobody will find anything in it later: no process had threads, pools or a device to lose.
// What was noted there, locks of files or output that was not flushed, came to nothing.
bool is_dull(const model::Model& model);

// A program that only forks and execs leaves nothing behind.
void forget_dull_traces(const watch::RunFolder& folder);

}  // namespace forksight
