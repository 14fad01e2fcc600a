// `forksight core`: explains what a core file holds.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace forksight {

void add_core_command(CLI::App& app, int& status);

}  // namespace forksight
