// `forksight core`: explains what a core file holds.
#pragma once

#include <CLI/CLI.hpp>

namespace forksight {

void add_core_command(CLI::App& app, int& status);

}  // namespace forksight
