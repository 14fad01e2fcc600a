// The verb `report` on the command line: traces again, of one run or of many ranks.
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace forksight {

// Adds the verb. If it was chosen and the line was good, the report is out when the parse returns, and `status` is what
// to exit with (exit_status.hpp).
void add_report_command(CLI::App& app, int& status);

}  // namespace forksight
