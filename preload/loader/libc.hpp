// What the libc that runs is, as far as it shows: its own functions are asked, not those that somebody has put before
// them.
#pragma once

#include "forksight/abi/glibc.hpp"

namespace forksight {

class ElfView;

// Nothing is known before the shim is initialised.
extern abi::Libc g_libc;

void identify_libc(const ElfView& libc, const ElfView& threads);

}  // namespace forksight
