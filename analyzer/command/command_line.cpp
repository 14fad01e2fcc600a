#include "command/command_line.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "command/ci_command.hpp"
#include "command/core_command.hpp"
#include "command/exit_status.hpp"
#include "command/explain_command.hpp"
#include "command/formatter.hpp"
#include "command/generate_command.hpp"
#include "command/nearest.hpp"
#include "command/output.hpp"
#include "command/queue_command.hpp"
#include "command/report_command.hpp"
#include "command/run_command.hpp"
#include "command/suite_command.hpp"
#include "command/trace_command.hpp"
#include "command/why_command.hpp"
#include "forksight/version.hpp"

namespace forksight {
namespace {

constexpr char kVerbExamples[] = R"(Examples:
  forksight run -- python train.py       run the program; hangs are reported, and cured where that is sound
  forksight ci --timeout 20m -- ctest    for CI: explain what hangs shortly before the limit, then end it
  forksight why 4242                     explain why this process hangs, and what to do
  forksight core hung.4242               the same for a core file, also on another machine
  forksight report forksight-out/        read the traces again, of one run or of many ranks
  forksight explain lost-openmp-pool     what a finding means, and how to fix it
  forksight queue inspect 4242           a shared-memory queue: who holds what, who is dead
  forksight suite run                    test whether forksight finds each hazard on this machine
  forksight trace dump FILE              one trace, record by record

)";

std::string join(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// Returns the names of the verb's options: "--on-hang", "-q".
std::vector<std::string> list_options(const CLI::App& verb) {
  std::vector<std::string> known;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    for (const std::string& name : option->get_snames()) known.push_back("-" + name);
  }
  return known;
}

// Returns the first word before "--" that looks like an option and is no option of this verb; "" if there is none.
std::string find_unknown_option(const CLI::App& verb, int argc, char** argv) {
  const std::vector<std::string> known = list_options(verb);
  for (int i = 2; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with('-') || word == "-") continue;
    const std::string name = word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
    if (std::ranges::find(known, name) == known.end()) return word.starts_with("--") ? name : word;
  }
  return {};
}

// Returns the line for words that the verb does not take. The parser itself names the last of these words, which is often
// the value of an unknown option.
std::string describe_extra_words(const CLI::App& verb, const std::string& words, int argc, char** argv) {
  const bool takes_command = words == "forksight run" || words == "forksight ci" || words == "forksight suite check";
  const bool has_dashes = std::any_of(argv, argv + argc, [](const char* word) { return std::string_view(word) == "--"; });
  if (takes_command && !has_dashes) return "the command must come after \"--\": " + words + " [OPTIONS] -- CMD [ARG...]";
  const std::string option = find_unknown_option(verb, argc, argv);
  return option.empty() ? std::string() : option + ": no such option";
}

// Searches the line for the first word that begins with "--", is no option of this verb, and resembles an option.
// Returns a suggestion for this word, such as "; did you mean --on-hang?"; "" if there is no such word.
std::string suggest_option(const CLI::App& verb, int argc, char** argv) {
  const std::vector<std::string> known = list_options(verb);
  for (int i = 2; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string word = std::string(argv[i]).substr(0, std::string_view(argv[i]).find('='));
    if (!word.starts_with("--") || std::ranges::find(known, word) != known.end()) continue;
    const std::vector<std::string> nearest = find_nearest(word, known);
    if (!nearest.empty()) return "; did you mean " + join(nearest, " or ") + "?";
  }
  return {};
}

std::string describe(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  // The message names the help of the innermost verb of the line. For `suite run --bad` this is `forksight suite run
  // --help`, because the help of `suite` does not list the options of `suite run`.
  const CLI::App* chosen = &app;
  std::string words = "forksight";
  while (!chosen->get_subcommands().empty()) {
    chosen = chosen->get_subcommands().front();
    words += " " + chosen->get_name();
  }
  const auto below = [](const CLI::App* one) { return !one->get_group().empty(); };
  if (chosen != &app && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
      !chosen->get_subcommands(below).empty()) {
    std::vector<std::string> verbs;
    for (const CLI::App* verb : chosen->get_subcommands(below)) verbs.push_back(verb->get_name());
    const std::string unknown = argc > 2 && argv[2][0] != '-' ? argv[2] : "";
    if (!unknown.empty()) {
      const std::vector<std::string> nearest = find_nearest(unknown, verbs);
      const std::string suggestion = nearest.empty() ? "there" : "did you mean " + join(nearest, " or ") + "? There";
      return unknown + ": no such verb of `" + words + "`; " + suggestion + (verbs.size() == 1 ? " is " : " are ") +
             join(verbs, ", ");
    }
    return words + ": say what to do: " + join(verbs, ", ") + "; try `" + words + " --help`";
  }
  if (chosen != &app) {
    const bool is_extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    const std::string extra = is_extra ? describe_extra_words(*chosen, words, argc, argv) : std::string();
    const std::string what = extra.empty() ? error.what() : extra;
    return what + suggest_option(*chosen, argc, argv) + "; try `" + words + " --help`";
  }
  if (argc < 2) return "no verb was given; try `forksight --help`";
  if (argv[1][0] == '-') return std::string(argv[1]) + ": no such option before the verb; try `forksight --help`";
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands(below)) verbs.push_back(verb->get_name());
  const std::vector<std::string> nearest = find_nearest(argv[1], verbs);
  const std::string suggestion = nearest.empty() ? "" : "did you mean " + join(nearest, " or ") + "? ";
  return std::string(argv[1]) + ": no such verb; " + suggestion + (nearest.empty() ? "there" : "There") + " are " +
         join(verbs, ", ");
}

// Returns the words of the command line, with a null pointer at the end. Turns `forksight help` into `forksight
// --help`, `forksight help why` into `forksight why --help`, and `forksight help suite run` into `forksight suite run
// --help`.
std::vector<char*> read_help_verb(const CLI::App& app, int argc, char** argv) {
  static char help[] = "--help";
  std::vector<char*> words(argv, argv + argc);
  if (argc >= 2 && std::string_view(argv[1]) == "help") {
    words.erase(words.begin() + 1);
    // If a word is not a verb, --help is not added, so that the word is reported as an error.
    const CLI::App* verb = &app;
    for (std::size_t i = 1; i < words.size() && verb != nullptr; ++i) {
      const auto found = verb->get_subcommands([&](const CLI::App* one) { return one->get_name() == words[i]; });
      verb = found.empty() ? nullptr : found.front();
    }
    if (verb != nullptr) words.push_back(help);
  }
  words.push_back(nullptr);
  return words;
}

// Joins all words after `forksight explain --search` to one word, because the parser would take a word such as "-j" for an
// option. `words` ends with a null pointer.
void join_search_words(std::vector<char*>& words) {
  static std::string joined;
  if (words.size() < 2 || words[1] == nullptr || std::string_view(words[1]) != "explain") return;
  const auto end = words.end() - 1;
  const auto is_help = [](const char* word) { return std::string_view(word) == "--help" || std::string_view(word) == "-h"; };
  const auto option = std::find_if(words.begin(), end, [](const char* word) { return std::string_view(word) == "--search"; });
  if (end - option < 2) return;
  if (is_help(*(option + 1))) {
    words.erase(option);
    return;
  }
  joined = std::string_view(*(option + 1)).starts_with('-') ? " " : "";
  for (auto word = option + 1; word != end; ++word) joined += (word == option + 1 ? "" : " ") + std::string(*word);
  words.erase(option + 2, end);
  *(option + 1) = joined.data();
}

}  // namespace

int run_command_line(int argc, char** argv) {
  int status = as_int(ExitStatus::kNothingFound);
  CLI::App app("Fork-safety and deadlock diagnosis for Linux processes", "forksight");
  app.formatter(std::make_shared<ExampleFormatter>("forksight [OPTIONS] VERB ...", kVerbExamples));
  app.set_version_flag("-V,--version", std::string("forksight ") + FORKSIGHT_VERSION);
  app.require_subcommand(1);
  add_run_command(app, argc, argv, status);
  add_ci_command(app, argc, argv, status);
  add_why_command(app, status);
  add_core_command(app, status);
  add_report_command(app, status);
  add_explain_command(app, status);
  add_queue_command(app, status);
  add_suite_command(app, argc, argv, status);
  add_trace_command(app, status);
  add_generate_command(app, status);
  std::vector<char*> words = read_help_verb(app, argc, argv);
  join_search_words(words);
  argc = static_cast<int>(words.size()) - 1;
  argv = words.data();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 also throws for --help and --version, with exit code 0.
    if (error.get_exit_code() == 0) {
      std::ostringstream text;
      app.exit(error, text, std::cerr);
      return as_int(write_out(text.str()) ? ExitStatus::kNothingFound : ExitStatus::kUnreadable);
    }
    say_error(describe(app, error, argc, argv));
    return as_int(ExitStatus::kUsage);
  }
  return status;
}

}  // namespace forksight
