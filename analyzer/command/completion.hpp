// Completion of the command line for shells, made from the tables of help. Each is a whole script.
#pragma once

#include <string>

#include "command/help_tables.hpp"

namespace forksight {

std::string render_bash_completion(const VerbHelp& root);
std::string render_zsh_completion(const VerbHelp& root);
std::string render_fish_completion(const VerbHelp& root);

}  // namespace forksight
