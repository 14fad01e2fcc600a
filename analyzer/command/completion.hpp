// Completion scripts for shells, made from the tables of the help. Each function render_* returns a whole script.
#pragma once

#include <string>

#include "command/help_tables.hpp"

namespace forksight {

// Quotes `text`, whatever bytes it has, so that sh reads it as one word.
std::string quote_for_sh(const std::string& text);

std::string render_bash_completion(const VerbHelp& root);
std::string render_zsh_completion(const VerbHelp& root);
std::string render_fish_completion(const VerbHelp& root);

}  // namespace forksight
