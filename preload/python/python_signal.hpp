// `forksight run` may ask a process that it has proven dead for its Python stacks. FORKSIGHT_PYTHON_SIGNAL names a
// real-time signal, which the shim handles if the program left it at its default. Without that variable the shim
// handles no signal.
#pragma once

namespace forksight {

// Installs the handler if the variable asks for it and the signal is at its default. Does so only once.
void answer_python_signal();

// The work of the handler (python.cpp). async-signal-safe; for a process in which nothing runs any more.
void record_python_on_request();

}  // namespace forksight
