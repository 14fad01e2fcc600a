// forksight suite check: fork tests of other people's libraries.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace forksight {

void add_suite_check(CLI::App& suite, int argc, const char* const* argv, int& status);

}  // namespace forksight
