// The verb `run` on the command line.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace forksight {

// Adds the verb. CMD is taken from argv as it stands there: what follows the first "--". If the verb was chosen and the
// line was good, the program has run when the parse returns, and `status` is what to exit with.
void add_run_command(CLI::App& app, int argc, const char* const* argv, int& status);

}  // namespace forksight
