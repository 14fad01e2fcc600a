// Results go to standard output, everything else to standard error.
#pragma once

#include <string_view>

namespace forksight {

// False, and said, if it could not be written (a full disk, a reader that went away).
bool write_out(std::string_view text);

// "forksight: error: ..." on standard error, one line whatever bytes it has.
void say_error(std::string_view sentence);

}  // namespace forksight
