// What a run exits with. Pure.
#pragma once

#include "session/session.hpp"

namespace forksight {

// `fails`: something at or above --fail-on was found and was not taken back. `status`: how CMD ended, as of wait(2).
int exit_status(const RunOptions& options, bool fails, int status);

}  // namespace forksight
