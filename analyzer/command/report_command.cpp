#include "command/report_command.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collect/load.hpp"
#include "command/formatter.hpp"
#include "command/guarded.hpp"
#include "command/output.hpp"
#include "command/progress.hpp"
#include "command/show_report.hpp"
#include "files/dead_places.hpp"
#include "files/named_paths.hpp"
#include "session/outside.hpp"

namespace forksight {
namespace {

constexpr char kReportExamples[] = R"(Examples:
  forksight report forksight-out/              what all runs in this folder found
  forksight report shared/job-17/              a job of many ranks that wrote into one folder: one finding for each cause
  forksight report out/ --format json | jq .   for machines; docs/report.schema.json says what is in it

)";

constexpr char kReportFooter[] = R"(
Exit status: 0 nothing found, 1 something found, 2 invalid command line, 3 the evidence could not be read.)";

struct ReportLine {
  std::vector<std::filesystem::path> folders;
  ReportStyle style;
};

// True if neither a trace nor a log tells anything about a process. For example, the writer of the only trace had not
// finished creating it.
bool has_no_evidence(const model::Model& model, const OutsideFindings& outside) {
  if (!model.processes.empty() || !model.command.empty()) return false;
  model::Model copy = model;
  std::vector<Finding> findings;
  outside.add_to(copy, findings);
  return findings.empty();
}

ExitStatus report(const files::Reader& reader, const ReportLine& line) {
  Progress progress("reading traces");
  collect::LoadOptions load;
  load.progress = [&](std::size_t done, std::size_t total) { progress.show(done, total); };
  Result<model::Model> model = collect::load_run(reader, line.folders, load);
  progress.clear();
  if (!model) {
    say_error(model.error());
    return ExitStatus::kUnreadable;
  }
  for (std::string& limit : files::describe_dead_places()) model->limits.push_back(std::move(limit));
  const OutsideFindings outside = OutsideFindings::read(reader, line.folders, model->limits);
  if (has_no_evidence(model.value(), outside) && !model->limits.empty()) {
    say_error(model->limits.front());
    return ExitStatus::kUnreadable;
  }
  return show_report(model.value(), line.style, {.outside = outside});
}

}  // namespace

void add_report_command(CLI::App& app, int& status) {
  auto line = std::make_shared<ReportLine>();
  CLI::App* const verb = app.add_subcommand("report", "Read traces again, of one run or of many ranks");
  verb->formatter(std::make_shared<ExampleFormatter>("forksight report [OPTIONS] DIR...", kReportExamples));
  verb->footer(std::string(kTestedHelp) + kReportFooter);
  verb->add_option("DIR", line->folders,
                   "Folders that `forksight run` wrote, searched recursively; or single *.fstrace files")
      ->required()
      ->type_name("")
      ->group("What to read");
  add_style_options(*verb, line->style);
  verb->callback([line, &status] {
    for (const std::filesystem::path& folder : line->folders) files::name_path(folder.string());
    status = run_guarded([&](const files::Reader& reader) { return as_int(report(reader, *line)); });
  });
}

}  // namespace forksight
