// forksight why: explain a process tree that hangs already.
#pragma once

#include <CLI/CLI.hpp>

namespace forksight {

void add_why_command(CLI::App& app, int& status);

}  // namespace forksight
