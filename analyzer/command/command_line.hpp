// The command line as a whole: its verbs, its help, and what is said of a line that makes no sense.
#pragma once

namespace forksight {

// The exit status. What libraries throw comes through.
int run_command_line(int argc, char** argv);

}  // namespace forksight
