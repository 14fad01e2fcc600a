// Asks stuck processes for their Python stacks: processes that are proven to hang, and their victims. forksight asks a
// process by a signal. According to the trace, the shim handles this signal in the process, and the program does not
// use the signal. forksight asks a process only if the signal disturbs none of its threads: the kernel must restart
// each interrupted wait after the handler. So forksight does not ask a process that waits in poll(), select() or
// epoll_wait(), or for a socket.
#pragma once

#include <map>
#include <string>

#include "model/model.hpp"
#include "proc/proc_fs.hpp"
#include "watch/supervisor.hpp"

namespace forksight {

// Returns the value of FORKSIGHT_PYTHON_SIGNAL for the environment of CMD. If the variable is set, its value stays; "0"
// means that forksight never asks. Otherwise forksight chooses the signal.
std::string python_signal_value();

// Asks each process of `stuck` that forksight may ask. Then waits until these processes sleep again, but at most half a
// second. `quick`: a model of the traces without symbols.
void request_python_stacks(const model::Model& quick, const std::map<proc::ProcessKey, watch::Verdict>& stuck,
                           watch::Supervisor& supervisor);

}  // namespace forksight
