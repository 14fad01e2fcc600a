// What is stuck, as the supervisor says, by process.
#pragma once

#include <map>

#include "model/model.hpp"
#include "proc/proc_fs.hpp"
#include "watch/supervisor.hpp"

namespace forksight {

using Verdicts = std::map<proc::ProcessKey, watch::Verdict>;

// Of this process; null: it is not stuck. The start of a process that is known by its trace alone may be unknown.
const watch::Verdict* find_verdict(const Verdicts& verdicts, const model::Process& process);

}  // namespace forksight
