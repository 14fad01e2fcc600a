// The verb `report` on the command line: reads traces again, of one run or of many ranks.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace forksight {

// Adds the verb. If the verb was chosen and the line is valid, the report has been written when the parse returns, and
// `status` is the exit status (exit_status.hpp).
void add_report_command(CLI::App& app, int& status);

}  // namespace forksight
