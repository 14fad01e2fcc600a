// Decides whether the traces of a finished run are kept.
#pragma once

#include <optional>

#include "collect/run_log.hpp"
#include "model/model.hpp"
#include "result.hpp"
#include "session/run_folder.hpp"

namespace forksight {

// Adds the log of the run to a model without names. Returns true if no hazard can be found in the model, even with
// names. Then forksight does not look up names, and saves most of the work.
bool merge_without_names(model::Model& nameless, const collect::RunLog& log);

// True if nothing was found in the traces, and nothing can be found in them later. For example, this is true for a
// program that only forks and execs: no process of the program had threads, pools or a device to lose. A recorded file
// lock or unflushed output is evidence only if a finding reports it.
bool has_no_evidence(const model::Model& model);

}  // namespace forksight
