// Whether the traces of a finished run are worth keeping.
#pragma once

#include <optional>

#include "collect/run_log.hpp"
#include "model/model.hpp"
#include "result.hpp"
#include "session/run_folder.hpp"

namespace forksight {

// Merges what the run saw into a model without names. True if no hazard can be found in it, even with names. The names
// then need not be looked up, which would be most of the work.
bool merge_without_names(model::Model& nameless, const collect::RunLog& log);

// True if nothing was found in the traces, and nothing can be found in them later: no process had threads, pools or a
// device to lose at a fork, and recorded file locks and unflushed output did no harm. So no folder remains of a program
// that only forks and execs.
bool has_no_evidence(const model::Model& model);

}  // namespace forksight
