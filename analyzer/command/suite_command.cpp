#include "command/suite_command.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "command/exit_status.hpp"
#include "command/formatter.hpp"
#include "command/output.hpp"
#include "command/suite_check.hpp"
#include "suite/manifest.hpp"

namespace forksight {
namespace {

constexpr char kSuiteDescription[] =
    "The hazard suite: small programs, each with one defect, and the findings that forksight must report";

constexpr char kSuiteExamples[] = R"(Examples:
  forksight suite list                   all cases: the hazard, how the program ends by itself, what cures it
  forksight suite run                    test whether forksight works as expected on this machine
  forksight suite run lost_openmp_pool   one case; globs work, too
  forksight suite run --library openmp --format junit --report suite.xml
  forksight suite check -- ./my_fork_test
                                         a library of your own: can forked children use it, too?

)";

constexpr char kSuiteFooter[] = R"(
Exit status: 0 all cases as expected, 1 some are not, 2 invalid command line, 3 the suite could not be read.)";

constexpr char kGroup[] = "Which cases";

}  // namespace

void add_suite_choice(CLI::App& verb, SuiteChoice& choice) {
  verb.add_option("CASE", choice.filter.names, "Names of cases, or globs such as 'orphaned_*'; by default all cases")
      ->type_name("")
      ->group(kGroup);
  verb.add_option("--slug", choice.filter.slugs, "Only cases that expect this hazard; may be given again")
      ->type_name("SLUG")
      ->allow_extra_args(false)
      ->group(kGroup);
  verb.add_option("--library", choice.filter.folders, "Only cases of this library or kind: openmp, locks, python ...")
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->group(kGroup);
  verb.add_option("--outcome", choice.filter.outcomes, "Only programs that end in this way by themselves: hang, spin, error, ok")
      ->type_name("END")
      ->check(CLI::IsMember({"hang", "spin", "error", "ok"}))
      ->allow_extra_args(false)
      ->group(kGroup);
  verb.add_option("--label", choice.filter.labels, "Only cases with this label: stress, gpu")
      ->type_name("LABEL")
      ->allow_extra_args(false)
      ->group(kGroup);
  verb.add_option("--cases", choice.folder, "The folder of another suite, with its cases.json")
      ->type_name("DIR")
      ->group(kGroup);
}

bool choose_suite(const SuiteChoice& choice, bool all, ChosenSuite& chosen, int& status) {
  const auto fail = [&](const std::string& message, ExitStatus with) {
    say_error(message);
    status = as_int(with);
    return false;
  };
  const auto folder = choice.folder.empty() ? suite::find_suite() : std::filesystem::absolute(choice.folder);
  if (!folder) return fail(folder.error(), ExitStatus::kUnreadable);
  auto suite = suite::read_suite(folder.value());
  if (!suite) return fail(suite.error(), ExitStatus::kUnreadable);
  chosen.suite = std::move(suite).value();
  suite::Selected selected = suite::select(chosen.suite, choice.filter, all);
  if (!selected.error.message.empty()) {
    return fail(selected.error.message, selected.error.is_usage ? ExitStatus::kUsage : ExitStatus::kUnreadable);
  }
  chosen.entries = std::move(selected.entries);
  return true;
}

void add_suite_command(CLI::App& app, int argc, const char* const* argv, int& status) {
  CLI::App* const verb = app.add_subcommand("suite", kSuiteDescription);
  verb->formatter(
      std::make_shared<ExampleFormatter>("forksight suite list|run|check [OPTIONS] [CASE...]", kSuiteExamples));
  verb->footer(kSuiteFooter);
  verb->require_subcommand(1);
  add_suite_list(*verb, status);
  add_suite_run(*verb, status);
  add_suite_check(*verb, argc, argv, status);
}

}  // namespace forksight
