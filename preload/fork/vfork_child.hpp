#pragma once

#include "guest/vfork_mark.hpp"

namespace forksight {

// Called when a child of vfork() calls exit(). Keeps the facts, so that the parent can record them when it continues.
void note_vfork_exit(const Site& site);

}  // namespace forksight
