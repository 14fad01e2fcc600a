// Results go to standard output, everything else to standard error.
#pragma once

#include <string_view>

namespace forksight {

// False, after an error message, if it could not be written (a full disk, a reader that went away).
bool write_out(std::string_view text);

// "forksight: error: ..." on standard error, on one line whatever bytes the sentence has.
void say_error(std::string_view sentence);

}  // namespace forksight
