#include "command/formatter.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "command/help_tables.hpp"
#include "render/page.hpp"
#include "render/terminal.hpp"

namespace forksight {
namespace {

constexpr std::size_t kUnknownColumns = 80;
constexpr std::size_t kLeastColumns = 40;
constexpr std::size_t kMostColumns = 100;  // longer lines are hard to read
constexpr std::size_t kIndent = 2;
constexpr std::size_t kGap = 2;
constexpr std::size_t kTextColumn = 30;  // of options and verbs
constexpr std::size_t kNarrow = 60;      // a narrower page has no second column
constexpr std::size_t kNarrowTextColumn = 6;

// Returns the column of the texts in a list. Heads that are longer than half of the page do not count: their text
// begins on the next line.
std::size_t find_text_column(const std::vector<HelpEntry>& entries, std::size_t columns) {
  if (columns < kNarrow) return kNarrowTextColumn;
  std::size_t longest = 0;
  for (const HelpEntry& one : entries) {
    const std::size_t end = kIndent + one.head.size() + kGap;
    if (end <= columns / 2) longest = std::max(longest, end);
  }
  return std::max(longest, kNarrowTextColumn);
}

void add_entries(render::Page& page, const std::vector<HelpEntry>& entries, std::size_t column) {
  for (const HelpEntry& one : entries) page.entry(one.head, one.text, column);
}

// Adds the lines under a title, after an empty line.
void add_group(render::Page& page, const std::string& title, const std::vector<HelpEntry>& entries,
               std::size_t column) {
  if (entries.empty()) return;
  page.blank();
  page.paragraph(render::Style::kPlain, title + ":");
  add_entries(page, entries, column);
}

// Returns the names of an option or argument and then its value, such as "-q,--quiet", "--format text|json" or
// "PID...".
std::string name_of_option(const OptionHelp& option) {
  std::string name = fmt::format("{}", fmt::join(option.names, ","));
  if (!option.value.empty()) name += (name.empty() ? "" : " ") + option.value;
  return option.is_positional() && option.is_repeated && !name.ends_with("...") ? name + "..." : name;
}

std::string text_of(const OptionHelp& option) {
  std::string text = option.description;
  std::vector<std::string> notes;
  if (option.is_required && !option.is_positional()) notes.emplace_back("required");
  if (!option.excluded.empty()) notes.push_back(fmt::format("not with {}", fmt::join(option.excluded, ", ")));
  if (!option.default_value.empty()) notes.push_back("default: " + option.default_value);
  return notes.empty() ? text : fmt::format("{} ({})", text, fmt::join(notes, "; "));
}

std::string path_of(const CLI::App& app) {
  std::string path;
  for (const CLI::App* at = &app; at->get_parent() != nullptr; at = at->get_parent())
    path = at->get_name() + (path.empty() ? "" : " " + path);
  return path;
}

}  // namespace

std::string ExampleFormatter::make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const {
  const std::size_t columns = render::find_columns(STDOUT_FILENO).value_or(kUnknownColumns);
  return render_help(read_help(*app, path_of(*app)), std::clamp(columns, kLeastColumns, kMostColumns));
}

std::string render_help(const VerbHelp& verb, std::size_t columns) {
  render::Page page({.columns = columns});
  const std::size_t column = columns < kNarrow ? kNarrowTextColumn : kTextColumn;
  page.paragraph(render::Style::kPlain, verb.description);
  add_group(page, "Examples", verb.examples, find_text_column(verb.examples, columns));
  page.blank();
  page.paragraph(render::Style::kPlain, "Usage: " + verb.usage);
  std::vector<HelpEntry> arguments;
  for (const OptionHelp& option : verb.options) {
    if (option.is_positional()) arguments.push_back({name_of_option(option), text_of(option)});
  }
  add_group(page, "Arguments", arguments, column);
  std::vector<std::string> groups;
  for (const OptionHelp& option : verb.options) {
    if (std::ranges::find(groups, option.group) == groups.end()) groups.push_back(option.group);
  }
  for (const std::string& group : groups) {
    std::vector<HelpEntry> entries;
    for (const OptionHelp& option : verb.options) {
      if (option.group == group && !option.is_positional())
        entries.push_back({name_of_option(option), text_of(option)});
    }
    add_group(page, group, entries, column);
  }
  std::vector<HelpEntry> verbs;
  for (const VerbHelp& one : verb.verbs) verbs.push_back({one.name(), one.description});
  add_group(page, "Subcommands", verbs, column);
  for (const HelpParagraph& note : verb.notes) {
    page.blank();
    if (!note.text.empty()) page.paragraph(render::Style::kPlain, note.text);
    add_entries(page, note.entries, find_text_column(note.entries, columns));
  }
  if (!verb.exit_status.empty()) {
    page.blank();
    page.paragraph(render::Style::kPlain, "Exit status: " + verb.exit_status);
  }
  return page.take();
}

}  // namespace forksight
