// `forksight suite check`: runs fork tests of the user's own libraries (suite/fork_test.hpp).
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace forksight {

void add_suite_check(CLI::App& suite, int argc, const char* const* argv, int& status);

}  // namespace forksight
