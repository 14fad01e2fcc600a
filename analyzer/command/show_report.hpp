// What every verb that explains does with its model: conclude, say it on standard output, answer with the exit status.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "command/exit_status.hpp"
#include "session/outside.hpp"
#include "model/model.hpp"

namespace forksight {

// `format`: "text" or "json". `outside`: what a run found and its traces do not tell.
ExitStatus show_report(model::Model& model, const std::string& format, const OutsideFindings& outside = {});

// The option --format of these verbs.
void add_format_option(CLI::App& verb, std::string& format);

}  // namespace forksight
