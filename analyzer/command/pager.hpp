// For a text that somebody reads from its beginning: a page of the documentation.
#pragma once

#include <string_view>

namespace forksight {

// Shows the text in a pager if standard output is a terminal that has fewer lines than the text. The pager is the command in the
// environment variable PAGER, else `less` if it is installed. In all other cases this is write_out(). False, and said, if the
// text could not be written. A reader that leaves the pager early is no error.
bool write_paged(std::string_view text);

}  // namespace forksight
