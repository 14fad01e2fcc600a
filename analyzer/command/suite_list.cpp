// `forksight suite list`
#include <unistd.h>

#include <memory>

#include <CLI/CLI.hpp>

#include "command/exit_status.hpp"
#include "command/formatter.hpp"
#include "command/output.hpp"
#include "command/suite_command.hpp"
#include "render/terminal.hpp"
#include "suite/views.hpp"

namespace forksight {
namespace {

constexpr char kListExamples[] = R"(Examples:
  forksight suite list --slug orphaned-mutex
  forksight suite list --library openmp --outcome spin
  forksight suite list --format markdown     what is seen, and how: docs/coverage.md

)";

struct ListLine {
  SuiteChoice choice;
  std::string format = "table";
};

int list(const ListLine& line) {
  int status = as_int(ExitStatus::kNothingFound);
  ChosenSuite chosen;
  if (!choose_suite(line.choice, true, chosen, status)) return status;
  std::string text = line.format == "json" ? suite::list_as_json(chosen.entries)
                     : line.format == "markdown"
                         ? suite::list_as_markdown(chosen.entries)
                         : suite::list_as_table(chosen.entries, render::find_columns(STDOUT_FILENO));
  return as_int(write_out(text) ? ExitStatus::kNothingFound : ExitStatus::kUnreadable);
}

}  // namespace

void add_suite_list(CLI::App& verb, int& status) {
  auto line = std::make_shared<ListLine>();
  CLI::App* const list_verb = verb.add_subcommand("list", "List the cases of the suite");
  list_verb->formatter(std::make_shared<ExampleFormatter>("forksight suite list [OPTIONS] [CASE...]", kListExamples));
  add_suite_choice(*list_verb, line->choice);
  list_verb->add_option("--format", line->format, "table, json (docs/suite.schema.json) or markdown")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"table", "json", "markdown"}))
      ->group("Output");
  list_verb->callback([line, &status] { status = list(*line); });
}

}  // namespace forksight
