// A manual page in roff (man(7)), made from the tables of help.
#pragma once

#include <string>

#include "command/help_tables.hpp"

namespace forksight {

// Returns a name such as "forksight-suite-run".
std::string page_name(const VerbHelp& verb);

std::string render_man_page(const VerbHelp& verb);

}  // namespace forksight
