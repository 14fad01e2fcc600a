// Results go to standard output, everything else to standard error.
#pragma once

#include <string_view>

namespace forksight {

// Writes to standard output. If that fails (a full disk, a reader that has gone), prints an error and returns false.
bool write_out(std::string_view text);

// Prints "forksight: error: ..." to standard error. The message is one line, whatever bytes the sentence has.
void say_error(std::string_view sentence);

}  // namespace forksight
