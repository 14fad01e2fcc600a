// Which style the text needs for the file that it is written to.
#pragma once

#include <cstddef>
#include <optional>

#include "render/text.hpp"

namespace forksight::render {

// Notes what standard output and standard error are now. From then on, what is said of them here holds for that, also
// if they are replaced.
void remember_terminals();

bool is_terminal(int fd);

// `fd` is a terminal, and neither NO_COLOR nor TERM=dumb forbids colour.
bool wants_colour(int fd);

// COLUMNS, if that is a number; else the width of the terminal `fd`. The result is between 40 and 200. None if `fd` is
// not a terminal.
std::optional<std::size_t> find_columns(int fd);

// All options for `fd`, with the working directory of this process.
TextOptions options_for(int fd);

}  // namespace forksight::render
