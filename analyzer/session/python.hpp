// Asks processes that were proven dead for their Python stacks: by the signal for which the shim said in its trace that
// it handles it there, and that nothing else in the process handles. After the proof nothing can be disturbed: whoever
// sleeps goes on sleeping, for the kernel restarts the waits that a proof is made of.
#pragma once

#include <map>
#include <string>

#include "model/model.hpp"
#include "proc/proc_fs.hpp"
#include "watch/supervisor.hpp"

namespace forksight {

// For the environment of the command: what FORKSIGHT_PYTHON_SIGNAL says there already, "0" for never, else our choice.
std::string python_signal_value();

// Asks each of `stuck` and waits until they sleep again, half a second at most. `quick`: what the traces say.
void request_python_stacks(const model::Model& quick, const std::map<proc::ProcessKey, watch::Verdict>& stuck,
                           watch::Supervisor& supervisor);

}  // namespace forksight
