// Decides whether the traces of a finished run are kept.
#pragma once

#include <optional>

#include "collect/run_log.hpp"
#include "model/model.hpp"
#include "result.hpp"
#include "session/run_folder.hpp"

namespace forksight {

// Merges what the run saw into a model without names. Returns true if no hazard can be found in the model, even with
// names. Then the names need not be looked up, and most of the work is saved.
bool merge_without_names(model::Model& nameless, const collect::RunLog& log);

// True if nothing was found in the traces, and nothing can be found in them later. This is so if no process had
// threads, pools or a device to lose at a fork, and the recorded file locks and unflushed output did no harm. So a
// program that only forks and execs leaves no folder behind.
bool has_no_evidence(const model::Model& model);

}  // namespace forksight
