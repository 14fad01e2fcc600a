// Writes to standard error. forksight uses this instead of fmt::print(stderr, ...), which throws an exception if
// standard error cannot be written. A full disk or a reader that has ended must not end forksight, because forksight may
// still have to end the processes of a job.
#pragma once

#include <string_view>

namespace forksight::files {

// Writes the text to standard error. If the kernel refuses to take it, the rest of the text is lost.
void write_error(std::string_view text);

}  // namespace forksight::files
