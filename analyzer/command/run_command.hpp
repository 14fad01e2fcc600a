// The verb `run` on the command line.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace forksight {

// Adds the verb. CMD is what follows the first "--" in argv, unchanged. If the verb was chosen and the line is valid,
// the program has run when the parse returns, and `status` is the exit status.
void add_run_command(CLI::App& app, int argc, const char* const* argv, int& status);

}  // namespace forksight
