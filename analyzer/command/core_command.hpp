// `forksight core`: explains a core file.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace forksight {

void add_core_command(CLI::App& app, int& status);

}  // namespace forksight
