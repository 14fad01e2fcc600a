// How a text is to look on the file that it is written to.
#pragma once

#include <cstddef>
#include <optional>

#include "render/text.hpp"

namespace forksight::render {

// A terminal, and NO_COLOR and TERM=dumb do not forbid it.
bool wants_colour(int fd);

// COLUMNS, if that is a number; else the width of the terminal that `fd` is; between 40 and 200. None if it is no
// terminal.
std::optional<std::size_t> find_columns(int fd);

// All of it, with the working directory of this process.
TextOptions options_for(int fd);

}  // namespace forksight::render
