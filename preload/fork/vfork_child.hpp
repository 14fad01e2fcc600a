#pragma once

#include "guest/vfork_mark.hpp"

namespace forksight {

// A child of vfork() calls exit(). Noted here, so that the parent can record it as soon as it goes on.
void note_vfork_exit(const Site& site);

}  // namespace forksight
