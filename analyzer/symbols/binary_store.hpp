// Keeps binaries open. The processes of a job map the same files. So a file that was read for one trace is not read
// again for other traces.
#pragma once

#include <mutex>

#include "result.hpp"
#include "symbols/binary.hpp"
#include "symbols/symbols.hpp"

namespace forksight::symbols {

// Guards the store and all binaries in it. Every public function of Symbolizer holds this mutex.
std::mutex& binaries_mutex();

// Opens the file of `module`, or returns the binary that is already open. A binary stays open as long as forksight
// runs. A later call for the same file and build-id returns the same binary. The caller must hold the mutex.
Result<Binary*> open_binary(const Module& module);

}  // namespace forksight::symbols
