#pragma once

namespace CLI {
class App;
}

namespace forksight {

void add_ci_command(CLI::App& app, int argc, const char* const* argv, int& status);

}  // namespace forksight
