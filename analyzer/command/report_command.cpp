#include "command/report_command.hpp"

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "collect/load.hpp"
#include "command/exit_status.hpp"
#include "command/formatter.hpp"
#include "command/output.hpp"
#include "command/progress.hpp"
#include "diagnose/diagnose.hpp"
#include "render/json.hpp"
#include "render/text.hpp"

namespace forksight {
namespace {

constexpr char kExamples[] = R"(Examples:
  forksight report forksight-out/              what all runs in this folder found
  forksight report shared/job-17/              a job of many ranks that wrote into one folder: one finding a cause
  forksight report out/ --format json | jq .   for machines; docs/report.schema.json says what is in it

)";

constexpr char kFooter[] = R"(
Exit status: 0 nothing found, 1 something found, 2 the line was not understood, 3 the evidence could not be read.)";

struct CommandLine {
  std::vector<std::filesystem::path> folders;
  std::string format = "text";
};

ExitStatus report(const CommandLine& line) {
  Progress progress("reading traces");
  collect::LoadOptions load;
  load.progress = [&](std::size_t done, std::size_t total) { progress.show(done, total); };
  Result<model::Model> model = collect::load_run(line.folders, load);
  progress.clear();
  if (!model) {
    say_error(model.error());
    return ExitStatus::kUnreadable;
  }
  const std::vector<Finding> findings = conclude(model.value());
  std::string text;
  if (line.format == "json") {
    text = render::render_json(model.value(), findings);
  } else {
    render::TextOptions options;
    options.colour = render::wants_colour(STDOUT_FILENO);
    std::error_code ignored;
    options.cwd = std::filesystem::current_path(ignored);
    text = render::render_text(model.value(), findings, options);
  }
  if (!write_out(text)) return ExitStatus::kUnreadable;
  return findings.empty() ? ExitStatus::kNothingFound : ExitStatus::kFindings;
}

}  // namespace

void add_report_command(CLI::App& app, int& status) {
  auto line = std::make_shared<CommandLine>();
  CLI::App* const verb = app.add_subcommand("report", "Read traces again, of one run or of many ranks");
  verb->formatter(std::make_shared<ExampleFormatter>("forksight report [OPTIONS] DIR...", kExamples));
  verb->footer(kFooter);
  verb->add_option("DIR", line->folders,
                   "Folders that `forksight run` wrote, searched recursively; or single *.fstrace files")
      ->required()
      ->type_name("")
      ->group("What to read");
  verb->add_option("--format", line->format, "How to say it")
      ->check(CLI::Validator(
          [](std::string& word) { return word == "text" || word == "json" ? "" : word + " is neither text nor json"; },
          ""))
      ->type_name("text|json")
      ->default_str("text")
      ->group("What comes out");
  verb->callback([line, &status] { status = as_int(report(*line)); });
}

}  // namespace forksight
