// `forksight run` may ask a process that it has proven dead for its Python stacks. FORKSIGHT_PYTHON_SIGNAL names a
// real-time signal, which the shim handles if the program left the signal at its default. Without that variable the
// shim handles no signal.
#pragma once

namespace forksight {

// Installs the handler once, if the variable asks for it and the signal is at its default.
void answer_python_signal();

// Called by the handler: records the stacks of all threads (python.cpp). async-signal-safe. Only for a process in which
// no thread runs any more.
void record_python_on_request();

}  // namespace forksight
