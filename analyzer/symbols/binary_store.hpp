// Binaries that are open already. A job's processes map the same files: what one trace paid for, others find read.
#pragma once

#include <mutex>

#include "result.hpp"
#include "symbols/binary.hpp"
#include "symbols/symbols.hpp"

namespace forksight::symbols {

// Guards the store and all binaries in it: every public function of this library holds it.
std::mutex& binaries_mutex();

// The same answer for the same file and build-id for as long as the program runs. Needs the mutex held.
Result<Binary*> open_binary(const Module& module);

}  // namespace forksight::symbols
