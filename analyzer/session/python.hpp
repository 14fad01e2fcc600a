// Asks processes that are proven dead for their Python stacks. It sends the signal that the shim, according to the
// trace, handles in that process and that nothing else in the process handles. After the proof nothing can be
// disturbed: a sleeping thread sleeps on, because the kernel restarts the waits that a proof consists of.
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
