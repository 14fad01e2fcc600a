#include "command/core_command.hpp"

#include <malloc.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include "command/formatter.hpp"
#include "command/guarded.hpp"
#include "command/output.hpp"
#include "command/show_report.hpp"
#include "files/dead_places.hpp"
#include "files/named_paths.hpp"
#include "inspect/core_subject.hpp"
#include "symbols/debug_files.hpp"

namespace forksight {
namespace {

constexpr char kCoreDescription[] = "Explain a process that hung, from its core file alone";

constexpr char kCoreExamples[] = R"(Examples:
  gcore -o hung 4243                     make a core file of a process that hangs; the process stays as it is
  forksight core hung.4243               what the process waits for, what the cause is, what to do
  forksight core hung.4243 --parent-core hung.4242
                                         and what the threads of its parent were doing
  forksight core core.7 --exe ./app      the program is now at another path than when it ran

)";

constexpr char kCoreFooter[] = R"(
forksight reads core files of the kernel, of gcore and of coredumpctl. Name the core of the process that hangs, not of the one that
waits for it. Programs, libraries and debug information that are not on this machine are fetched from the servers that
DEBUGINFOD_URLS names; for root only with --debuginfod.

Exit status: 0 nothing found, 1 something found, 2 invalid command line, 3 the core could not be read.)";

struct CoreLine {
  std::string core;
  inspect::CoreSubjectOptions options;
  bool debuginfod = false;
  ReportStyle style;
};

ExitStatus explain(const files::Reader& reader, const CoreLine& line) {
  auto subjects = inspect::open_core_subjects(reader, line.core, line.options);
  if (!subjects) {
    say_error(subjects.error());
    return ExitStatus::kUnreadable;
  }
  // The subjects are freed before the report is made: with very many threads, they take as much memory as the report.
  model::Model model = inspect::build_model(std::move(subjects).value());
#ifdef __GLIBC__
  ::malloc_trim(0);  // the freed memory lies between the parts of the model, where glibc would keep it
#endif
  for (std::string& limit : files::describe_dead_places()) model.limits.push_back(std::move(limit));
  if (std::string limit = symbols::debuginfod_limit(); !limit.empty()) model.limits.push_back(std::move(limit));
  return show_report(model, line.style, {.waits = ShownWaits::kAll});
}

}  // namespace

void add_core_command(CLI::App& app, int& status) {
  auto line = std::make_shared<CoreLine>();
  CLI::App* const verb = app.add_subcommand("core", kCoreDescription);
  verb->formatter(std::make_shared<ExampleFormatter>("forksight core [OPTIONS] CORE", kCoreExamples));
  verb->footer(std::string(kTestedHelp) + kCoreFooter);
  verb->add_option("CORE", line->core, "The core file")->required()->type_name("")->group("What to look at");
  verb->add_option("--exe", line->options.exe,
                   "The file of the program, if it is not where it was when the core was written")
      ->type_name("FILE")
      ->group("What to look at");
  verb->add_option("--parent-core", line->options.parent_core, "A core of the parent, which forked the process of CORE")
      ->type_name("FILE")
      ->group("What to look at");
  verb->add_flag(
          "--debuginfod", line->debuginfod,
          "Ask the servers in DEBUGINFOD_URLS for files that are not on this machine, even if forksight runs as root")
      ->group("How to look");
  add_style_options(*verb, line->style);
  verb->callback([line, &status] {
    symbols::allow_debuginfod(line->debuginfod);
    files::name_path(line->core);
    files::name_path(line->options.exe);
    files::name_path(line->options.parent_core);
    status = run_guarded([&](const files::Reader& reader) { return as_int(explain(reader, *line)); });
  });
}

}  // namespace forksight
