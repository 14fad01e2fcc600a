// Chooses the style of a text for the descriptor to which it is written.
#pragma once

#include <cstddef>
#include <optional>

#include "render/text.hpp"

namespace forksight::render {

// Notes what standard input, output and error are now. From then on, the functions below describe these files, even if
// the descriptors are replaced.
void remember_terminals();

bool is_terminal(int fd);

// True if `fd` is a terminal, NO_COLOR is not set, and TERM is set to anything but "dumb".
bool wants_colour(int fd);

// Returns COLUMNS, if that is a number; else the width of the terminal `fd`. The result is between 40 and 200. None if
// COLUMNS is no number and `fd` is not a terminal.
std::optional<std::size_t> find_columns(int fd);

// All options for `fd`, with the working directory of this process.
TextOptions options_for(int fd);

}  // namespace forksight::render
