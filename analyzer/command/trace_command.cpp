#include "command/trace_command.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "collect/trace_file.hpp"
#include "command/exit_status.hpp"
#include "command/formatter.hpp"
#include "command/guarded.hpp"
#include "command/output.hpp"
#include "dump/dump.hpp"
#include "files/named_paths.hpp"

namespace forksight {
namespace {

constexpr char kTraceDescription[] = "Show the records of a trace file, for maintainers and bug reports";

constexpr char kTraceExamples[] = R"(Examples:
  forksight trace dump forksight-out/run-1/4242-1.fstrace     every record, with its fields
  forksight trace dump FILE --format jsonl | jq 'select(.record == "fork")'
                                                              one JSON object a line: docs/trace.md

)";

constexpr char kTraceFooter[] = R"(
Exit status: 0 all was read, 1 some records are bad, 2 invalid command line, 3 the file is no trace.)";

struct TraceLine {
  std::filesystem::path file;
  std::string format = "text";
};

ExitStatus show_all(const files::Reader& reader, const TraceLine& line) {
  const Result<collect::TraceFile> file = collect::TraceFile::read(reader, line.file);
  if (!file) {
    say_error(file.error());
    return ExitStatus::kUnreadable;
  }
  const auto format = line.format == "jsonl" ? dump::Format::kJsonLines : dump::Format::kText;
  const auto totals = dump::dump_trace(file.value(), format, write_out);
  if (!totals) return ExitStatus::kUnreadable;
  return totals->bad == 0 ? ExitStatus::kNothingFound : ExitStatus::kFindings;
}

}  // namespace

void add_trace_command(CLI::App& app, int& status) {
  auto line = std::make_shared<TraceLine>();
  CLI::App* const verb = app.add_subcommand("trace", kTraceDescription);
  verb->formatter(std::make_shared<ExampleFormatter>("forksight trace dump [OPTIONS] FILE", kTraceExamples));
  verb->footer(kTraceFooter);
  verb->require_subcommand(1);

  CLI::App* const all = verb->add_subcommand("dump", "Print every record of one trace, bad ones included");
  all->formatter(std::make_shared<ExampleFormatter>("forksight trace dump [OPTIONS] FILE", kTraceExamples));
  all->footer(kTraceFooter);
  all->add_option("FILE", line->file, "A *.fstrace file, as `forksight run` writes them into its folder")
      ->required()
      ->type_name("")
      ->group("What to read");
  all->add_option("--format", line->format, "The format of the output")
      ->check(CLI::Validator(
          [](std::string& word) {
            return word == "text" || word == "jsonl" ? "" : word + " is neither text nor jsonl";
          },
          ""))
      ->type_name("text|jsonl")
      ->default_str("text")
      ->group("What comes out");
  all->callback([line, &status] {
    files::name_path(line->file.string());
    // There is no time limit, because the program that reads the output may be slow.
    status = run_guarded([&](const files::Reader& reader) { return as_int(show_all(reader, *line)); },
                         {.output = Output::kAtOnce, .limit = {}});
  });
}

}  // namespace forksight
