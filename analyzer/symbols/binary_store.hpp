// Keeps open binaries. The processes of a job map the same files. A file that was read for one trace is not read again
// for others.
#pragma once

#include <mutex>

#include "result.hpp"
#include "symbols/binary.hpp"
#include "symbols/symbols.hpp"

namespace forksight::symbols {

// Guards the store and all binaries in it. Every public function of this library holds this mutex.
std::mutex& binaries_mutex();

// Returns the same answer for the same file and build-id as long as the program runs. The caller must hold the mutex.
Result<Binary*> open_binary(const Module& module);

}  // namespace forksight::symbols
