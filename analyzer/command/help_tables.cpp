#include "command/help_tables.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "command/formatter.hpp"
#include "diagnose/rules.hpp"

namespace forksight {
namespace {

constexpr char kExitStatus[] = "Exit status: ";

// The placeholder that the help shows for a value (FILE, DIR, PID ...) determines the kind of value.
constexpr std::array<std::pair<std::string_view, ValueKind>, 7> kKinds{{
    {"FILE", ValueKind::kFile},
    {"CORE", ValueKind::kFile},
    {"DIR", ValueKind::kFolder},
    {"PID", ValueKind::kProcess},
    {"QUEUE", ValueKind::kProcess},
    {"CMD", ValueKind::kCommand},
    {"SLUG", ValueKind::kChoice},
}};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

std::string trim(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \n");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \n") - first + 1);
}

// True for a word that a user types as it is; false for a placeholder, which is in capitals.
bool is_literal(const std::string& word) {
  return !word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
}

void read_value(OptionHelp& help, const std::string& type) {
  const std::size_t checks = type.find(':');
  help.value = trim(type.substr(0, checks));
  const auto known = std::ranges::find(kKinds, help.value, [](const auto& row) { return row.first; });
  help.kind = known == kKinds.end() ? ValueKind::kAny : known->second;
  if (help.value == "SLUG") {
    for (const Rule& rule : all_rules()) help.choices.emplace_back(rule.slug);
    return;
  }
  const std::size_t open = type.find('{');
  const bool has_set = checks != std::string::npos && open != std::string::npos;
  const std::vector<std::string> words =
      has_set ? split(type.substr(open + 1, type.find('}') - open - 1), ',') : split(help.value, '|');
  std::ranges::copy_if(words, std::back_inserter(help.choices), is_literal);
  if (!help.choices.empty() && help.choices.size() == words.size()) help.kind = ValueKind::kChoice;
}

OptionHelp read_option(const CLI::Option& option) {
  OptionHelp help;
  for (const std::string& name : option.get_snames()) help.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) help.names.push_back("--" + name);
  help.description = option.get_description();
  help.default_value = option.get_default_str();
  help.group = option.get_group();
  help.is_repeated = option.get_expected_max() > 1;
  help.is_required = option.get_required();
  for (const CLI::Option* other : option.get_excludes()) help.excluded.push_back(other->get_name());
  std::ranges::sort(help.excluded);
  if (help.is_positional()) {
    read_value(help, option.get_name(true));
  } else if (option.get_items_expected_max() > 0) {
    read_value(help, option.get_type_name());
  }
  return help;
}

std::vector<OptionHelp> read_options(const CLI::App& app) {
  std::vector<OptionHelp> all;
  for (const std::string& group : app.get_groups()) {
    for (const CLI::Option* option :
         app.get_options([&](const CLI::Option* one) { return one->get_group() == group; })) {
      all.push_back(read_option(*option));
    }
  }
  return all;
}

const ExampleFormatter* own_formatter(const CLI::App& app) {
  const bool is_inherited = app.get_parent() != nullptr && app.get_formatter() == app.get_parent()->get_formatter();
  return is_inherited ? nullptr : dynamic_cast<const ExampleFormatter*>(app.get_formatter().get());
}

// Returns the usage line of a verb that has no ExampleFormatter of its own.
std::string make_usage(const VerbHelp& verb) {
  std::string usage = "forksight " + verb.path + " [OPTIONS]";
  for (const OptionHelp& option : verb.options) {
    if (option.is_positional()) usage += " " + option.value + (option.is_repeated ? "..." : "");
  }
  return usage;
}

void read_footer(VerbHelp& help, const std::string& footer) {
  for (HelpParagraph& paragraph : read_paragraphs(footer)) {
    if (paragraph.text.starts_with(kExitStatus)) {
      help.exit_status = paragraph.text.substr(sizeof kExitStatus - 1);
    } else {
      help.notes.push_back(std::move(paragraph));
    }
  }
}

void read_examples(VerbHelp& help, const std::string& examples, const std::string& start) {
  for (HelpParagraph& paragraph : read_paragraphs(examples)) {
    for (HelpEntry& entry : paragraph.entries) {
      if (entry.head.starts_with(start)) help.examples.push_back(std::move(entry));
    }
  }
}

}  // namespace

VerbHelp read_help(const CLI::App& app, const std::string& path) {
  VerbHelp help;
  help.path = path;
  help.description = app.get_description();
  help.options = read_options(app);
  if (const ExampleFormatter* const formatter = own_formatter(app)) {
    help.usage = formatter->usage();
    read_examples(help, formatter->examples(), "");
  } else {
    help.usage = make_usage(help);
    const auto* const parents = dynamic_cast<const ExampleFormatter*>(app.get_formatter().get());
    if (parents != nullptr) read_examples(help, parents->examples(), "forksight " + path);
  }
  read_footer(help, app.get_footer());
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    help.verbs.push_back(read_help(*verb, path.empty() ? verb->get_name() : path + " " + verb->get_name()));
  }
  return help;
}

std::vector<HelpParagraph> read_paragraphs(const std::string& text) {
  std::vector<HelpParagraph> paragraphs;
  bool is_open = false;
  for (const std::string& line : split(text, '\n')) {
    if (trim(line).empty()) {
      is_open = false;
      continue;
    }
    if (!is_open) paragraphs.emplace_back();
    is_open = true;
    HelpParagraph& now = paragraphs.back();
    if (!line.starts_with("  ")) {
      now.text += (now.text.empty() ? "" : " ") + trim(line);
    } else if (line[2] == ' ' && !now.entries.empty()) {
      std::string& entry = now.entries.back().text;
      entry += (entry.empty() ? "" : " ") + trim(line);
    } else {
      const std::string rest = trim(line);
      const std::size_t gap = rest.find("  ");
      now.entries.push_back({rest.substr(0, gap), gap == std::string::npos ? "" : trim(rest.substr(gap))});
    }
  }
  return paragraphs;
}

VerbHelp read_help_tables(const CLI::App& app) { return read_help(app, ""); }

std::vector<const VerbHelp*> list_verbs(const VerbHelp& root) {
  std::vector<const VerbHelp*> all{&root};
  for (const VerbHelp& verb : root.verbs) {
    const std::vector<const VerbHelp*> below = list_verbs(verb);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

}  // namespace forksight
