// Whether the traces of a finished run are worth keeping.
#pragma once

#include <optional>

#include "collect/run_log.hpp"
#include "model/model.hpp"
#include "result.hpp"
#include "session/run_folder.hpp"

namespace forksight {

// Loads without symbols.
Result<model::Model> load_quickly(const RunFolder& folder);

// The same; nullopt if there are no readable traces.
std::optional<model::Model> load_nameless(const RunFolder& folder);

// Merges what the run saw into a model without names. True: nothing can be found in it, with names either. Looking up
// names is most of the work.
bool merge_clean(model::Model& nameless, const collect::RunLog& log);

// Nothing was found, and nobody will find anything later: no process had threads, pools or a device to lose, and
// recorded file locks and unflushed output did no harm. So a program that only forks and execs leaves no folder behind.
bool has_no_evidence(const model::Model& model);

}  // namespace forksight
