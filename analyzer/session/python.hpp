// Asks stuck processes for their Python stacks: processes that are proven to hang, and their victims. It sends the
// signal that, according to the trace, the shim and nothing else handles in that process. This does not disturb these
// processes: their threads go on sleeping, because the kernel restarts the waits of which a proof consists.
#pragma once

#include <map>
#include <string>

#include "model/model.hpp"
#include "proc/proc_fs.hpp"
#include "watch/supervisor.hpp"

namespace forksight {

// For the environment of CMD: the existing value of FORKSIGHT_PYTHON_SIGNAL, where "0" means never, or else forksight's
// own choice.
std::string python_signal_value();

// Asks each of `stuck` and waits until they sleep again, at most half a second. `quick`: a model of the traces without
// symbols.
void request_python_stacks(const model::Model& quick, const std::map<proc::ProcessKey, watch::Verdict>& stuck,
                           watch::Supervisor& supervisor);

}  // namespace forksight
