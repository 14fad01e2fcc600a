#include "command/generate_command.hpp"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "command/completion.hpp"
#include "command/exit_status.hpp"
#include "command/formatter.hpp"
#include "command/help_tables.hpp"
#include "command/man_page.hpp"
#include "command/output.hpp"
#include "files/replace_file.hpp"
namespace forksight {
namespace {

constexpr char kExamples[] = R"(Examples:
  forksight generate man share/man/man1  a page for the command, and one for each verb
  forksight generate bash                the completion for bash, on standard output
  forksight generate zsh FOLDER          the completion for zsh, as the file FOLDER/_forksight

)";

constexpr char kFooter[] = R"(
Exit status: 0 all was written, 2 invalid command line, 3 it could not be written.)";

struct CommandLine {
  std::string what;
  std::filesystem::path folder;
};

struct MadeFile {
  std::string name;
  std::string text;
};

std::vector<MadeFile> make_files(const std::string& what, const VerbHelp& root) {
  if (what == "bash") return {{"forksight", render_bash_completion(root)}};
  if (what == "zsh") return {{"_forksight", render_zsh_completion(root)}};
  if (what == "fish") return {{"forksight.fish", render_fish_completion(root)}};
  std::vector<MadeFile> pages;
  for (const VerbHelp* verb : list_verbs(root)) pages.push_back({page_name(*verb) + ".1", render_man_page(*verb)});
  return pages;
}

// Returns "" or the reason of the failure.
std::string write_file(const std::filesystem::path& file, const std::string& text) {
  const std::string why = files::write_output(file.string(), text);
  return why.empty() ? "" : fmt::format("{}: cannot be written: {}", file.string(), why);
}

ExitStatus generate(const CommandLine& line, const VerbHelp& root) {
  const std::vector<MadeFile> files = make_files(line.what, root);
  if (line.folder.empty()) return write_out(files.front().text) ? ExitStatus::kNothingFound : ExitStatus::kUnreadable;
  // An error here needs no message: writing the first file then fails for the same reason.
  std::error_code ignored;
  std::filesystem::create_directories(line.folder, ignored);
  for (const MadeFile& file : files) {
    const std::string problem = write_file(line.folder / file.name, file.text);
    if (problem.empty()) continue;
    say_error(problem);
    return ExitStatus::kUnreadable;
  }
  return ExitStatus::kNothingFound;
}

}  // namespace

void add_generate_command(CLI::App& app, int& status) {
  auto line = std::make_shared<CommandLine>();
  CLI::App* const verb = app.add_subcommand("generate", "Manual pages, and completion for shells");
  verb->group("");
  verb->formatter(std::make_shared<ExampleFormatter>("forksight generate man|bash|zsh|fish [FOLDER]", kExamples));
  verb->footer(kFooter);
  verb->add_option("WHAT", line->what, "man: pages for man(1), which need a FOLDER; else the completion for that shell")
      ->required()
      ->check(CLI::IsMember({"man", "bash", "zsh", "fish"}).description(""))
      ->type_name("");
  verb->add_option("FOLDER", line->folder, "Write files of the usual names into it, instead of standard output")
      ->type_name("");
  verb->callback([line, &app, &status] {
    if (line->what == "man" && line->folder.empty())
      throw CLI::ValidationError("FOLDER", "is missing: man makes several pages");
    status = as_int(generate(*line, read_help_tables(app)));
  });
}

}  // namespace forksight
