// The verb `trace`.
#pragma once

#include <CLI/CLI.hpp>

namespace forksight {

void add_trace_command(CLI::App& app, int& status);

}  // namespace forksight
