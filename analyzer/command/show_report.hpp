// The last step of every verb that explains: finds the hazards in the model, prints the report to standard output, and
// returns the exit status.
#pragma once

#include <string>
#include <vector>

#include "command/exit_status.hpp"
#include "model/model.hpp"
#include "session/outside.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace forksight {

// Selects the processes whose waits a text report shows. A JSON document shows the waits of all processes.
enum class ShownWaits {
  kUnexplained,  // processes that hang and that no finding explains
  kAll,          // all processes that no finding is about
};

// The form of a report.
struct ReportStyle {
  std::string format = "text";  // or "json"
  bool full = false;            // text: every frame of every stack
};

struct ReportContents {
  OutsideFindings outside = {};  // findings that a run made when it examined living processes
  ShownWaits waits = ShownWaits::kUnexplained;
  std::vector<std::string> locals = {};  // lines about the variables of Python frames; only a text shows them
  std::string next = {};  // what the user can do if nothing was found, but a text shows waits; "": nothing is said
};
ExitStatus show_report(model::Model& model, const ReportStyle& style, const ReportContents& contents = {});

// For the end of --help of each verb that prints a report.
inline constexpr char kTestedHelp[] = R"(
In a report, [tested] marks advice that the hazard suite tries. The suite has a program that hangs by this hazard. The same
program ends well if it follows the advice.
)";

inline constexpr char kFullHelp[] =
    "Show every frame of each stack; without this option, frames of libraries and runtimes are folded";
// Adds the options --format and --full.
void add_style_options(CLI::App& verb, ReportStyle& style);
// Adds only --format.
void add_format_option(CLI::App& verb, std::string& format);

}  // namespace forksight
