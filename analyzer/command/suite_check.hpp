// forksight suite check: fork tests of other people's libraries.
#pragma once

#include <CLI/CLI.hpp>

namespace forksight {

void add_suite_check(CLI::App& suite, int argc, const char* const* argv, int& status);

}  // namespace forksight
