// Whether the traces of a run that is over are worth a folder.
#pragma once

#include <optional>

#include "collect/run_log.hpp"
#include "model/model.hpp"
#include "result.hpp"
#include "session/run_folder.hpp"

namespace forksight {

// Without symbols.
Result<model::Model> load_quickly(const RunFolder& folder);

// The same; nothing where there are no traces that can be read.
std::optional<model::Model> load_nameless(const RunFolder& folder);

// Merges what the run saw into a model without names. True: nothing is to be found in it, with names either. Looking
// these up is most of the work.
bool merge_clean(model::Model& nameless, const collect::RunLog& log);

// Nothing was found in it, and nobody will find anything in it later: no process had threads, pools or a device to
// lose. What was noted there, locks of files or output that was not flushed, came to nothing. So a program that only
// forks and execs leaves no folder behind.
bool is_dull(const model::Model& model);

}  // namespace forksight
