// The command line as a whole: its verbs, its help, and the messages about an invalid line.
#pragma once

namespace forksight {

// Returns the exit status. Exceptions of libraries pass through.
int run_command_line(int argc, char** argv);

}  // namespace forksight
