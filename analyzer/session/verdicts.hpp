// The processes that are stuck, and the supervisor's verdict on each.
#pragma once

#include <map>

#include "model/model.hpp"
#include "proc/proc_fs.hpp"
#include "watch/supervisor.hpp"

namespace forksight {

using Verdicts = std::map<proc::ProcessKey, watch::Verdict>;

// The verdict on this process; null: it is not stuck. If the start time of the process is not known (it is only known
// from its trace), the pid alone decides.
const watch::Verdict* find_verdict(const Verdicts& verdicts, const model::Process& process);

}  // namespace forksight
