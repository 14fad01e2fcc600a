// What every verb that explains does with its model: conclude, say it on standard output, answer with the exit status.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "command/exit_status.hpp"
#include "session/outside.hpp"
#include "model/model.hpp"

namespace forksight {

// Of which processes a text tells what they wait for; a document tells it of all.
enum class ShownWaits {
  kUnexplained,  // of those that hang, and nothing explains why
  kAll,          // of all that no finding is about
};

// `format`: "text" or "json". `outside`: what a run found and its traces do not tell.
ExitStatus show_report(model::Model& model, const std::string& format, const OutsideFindings& outside = {},
                       ShownWaits waits = ShownWaits::kUnexplained);

// The option --format of these verbs.
void add_format_option(CLI::App& verb, std::string& format);

}  // namespace forksight
