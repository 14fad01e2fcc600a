#pragma once

#include "guest/vfork_mark.hpp"

namespace forksight {

// A child of vfork() calls exit(): kept, for its parent to write down as soon as that goes on.
void note_vfork_exit(const Site& site);

}  // namespace forksight
