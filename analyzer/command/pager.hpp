// Shows a long text that is read from its beginning, such as a page of the documentation.
#pragma once

#include <string_view>

namespace forksight {

// Shows the text in a pager if standard output is a terminal that has fewer lines than the text. The pager is the
// command in the environment variable PAGER, else `less` if it is installed. In all other cases, calls write_out(). If
// the text could not be written, prints an error and returns false. If a reader leaves the pager early, this counts as
// success.
bool write_paged(std::string_view text);

}  // namespace forksight
