// The version and properties of the running libc. They come from libc's own functions, not from functions that another
// library interposes.
#pragma once

#include "forksight/abi/glibc.hpp"

namespace forksight {

class ElfView;

// All zero, which means unknown, before the shim is initialised.
extern abi::Libc g_libc;

void identify_libc(const ElfView& libc, const ElfView& threads);

}  // namespace forksight
