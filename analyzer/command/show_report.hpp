// What every verb that explains does with its model: conclude, say it on standard output, answer with the exit status.
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

// Of which processes a text tells what they wait for; a document tells it of all.
enum class ShownWaits {
  kUnexplained,  // of those that hang, and nothing explains why
  kAll,          // of all that no finding is about
};

// How a report comes out.
struct ReportStyle {
  std::string format = "text";  // or "json"
  bool full = false;            // text: every frame of every stack
};

struct ReportContents {
  OutsideFindings outside = {};  // what a run found and its traces do not tell
  ShownWaits waits = ShownWaits::kUnexplained;
  std::vector<std::string> locals = {};  // of Python's frames, for a text
};
ExitStatus show_report(model::Model& model, const ReportStyle& style, const ReportContents& contents = {});

// For the end of --help of each verb that prints a report.
inline constexpr char kTestedHelp[] = R"(
In a report, [tested] marks advice that the hazard suite tries: it has a program with this hazard that hangs, and the same
program ends well where the advice is followed.
)";

inline constexpr char kFullHelp[] = "Every frame of each stack; else those of libraries and runtimes are folded";
// The options --format and --full of these verbs.
void add_style_options(CLI::App& verb, ReportStyle& style);
// --format alone.
void add_format_option(CLI::App& verb, std::string& format);

}  // namespace forksight
