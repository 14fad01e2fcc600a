// The processes that are stuck, and the supervisor's verdict on each of them.
#pragma once

#include <map>

#include "model/model.hpp"
#include "proc/proc_fs.hpp"
#include "watch/supervisor.hpp"

namespace forksight {

using Verdicts = std::map<proc::ProcessKey, watch::Verdict>;

// Returns the verdict on this process; null if the process is not stuck. If the process is known only from its trace,
// its start time may not be known. Then the pid alone decides.
const watch::Verdict* find_verdict(const Verdicts& verdicts, const model::Process& process);

}  // namespace forksight
