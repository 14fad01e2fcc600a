// Shows a long text that is read from its beginning, such as a page of the documentation.
#pragma once

#include <string_view>

namespace forksight {

// Shows the text in a pager if standard output is a terminal that has fewer lines than the text. The pager is the
// command in the environment variable PAGER, else `less` if it is installed. In all other cases, calls write_out(). If
// the text could not be written, prints an error and returns false. A reader who leaves the pager early is no error.
bool write_paged(std::string_view text);

}  // namespace forksight
