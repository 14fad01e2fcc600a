// Chooses the style of a text. The style depends on the descriptor to which the text is written.
#pragma once

#include <cstddef>
#include <optional>

#include "render/text.hpp"

namespace forksight::render {

// Notes whether standard input, output and error are terminals now, and how wide they are. Later calls of the functions
// below use these notes, even if the descriptors have been replaced.
void remember_terminals();

bool is_terminal(int fd);

// True if `fd` is a terminal, NO_COLOR is empty or not set, and TERM is set to something other than "dumb".
bool wants_colour(int fd);

// Returns the number of columns from COLUMNS. If COLUMNS is not a number, returns the width of the terminal `fd`. The
// result is at least 40 and at most 200. None if COLUMNS is not a number and `fd` is not a terminal.
std::optional<std::size_t> find_columns(int fd);

// Returns all options for a text that is written to `fd`. The working directory is that of this process.
TextOptions options_for(int fd);

}  // namespace forksight::render
