// `forksight generate`: manual pages and completions, for the build and for packagers. The help does not show this
// verb.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace forksight {

void add_generate_command(CLI::App& app, int& status);

}  // namespace forksight
