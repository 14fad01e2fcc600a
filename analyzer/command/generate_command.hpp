// `forksight generate`: manual pages and completions, for the build and for packagers. Help does not show it.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace forksight {

void add_generate_command(CLI::App& app, int& status);

}  // namespace forksight
