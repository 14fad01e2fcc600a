#include "command/man_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "forksight/version.hpp"

namespace forksight {
namespace {

// Escapes a text for roff, so that the reader sees it unchanged: hyphens can be copied to a shell, and no character
// counts as a command of roff.
std::string escape_roff(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '\\': escaped += "\\e"; break;
      case '-': escaped += "\\-"; break;
      case '\'': escaped += "\\(aq"; break;
      case '`': escaped += "\\(ga"; break;
      case '~': escaped += "\\(ti"; break;
      case '^': escaped += "\\(ha"; break;
      case '"': escaped += "\\(dq"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

std::string bold(const std::string& text) { return "\\fB" + escape_roff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + escape_roff(text) + "\\fR"; }

// A line of text. A dot at its start is escaped, because it would begin a command of roff.
std::string line(const std::string& text) { return (text.starts_with('.') ? "\\&" : "") + text + "\n"; }

std::string entry(const std::string& head, const std::string& text) {
  return ".TP\n" + line(head) + line(text.empty() ? "\\&" : text);
}

std::string option_head(const OptionHelp& option) {
  if (option.is_positional()) return italic(option.value);
  std::string head;
  for (const std::string& name : option.names) head += (head.empty() ? "" : ", ") + bold(name);
  if (option.kind != ValueKind::kNone) head += " " + italic(option.value);
  return head;
}

std::string option_text(const OptionHelp& option) {
  std::string text = option.description;
  if (!text.empty() && text.back() != '.') text += '.';
  const bool are_told = option.value.find('|') != std::string::npos || option.choices.size() > 12;
  if (!option.choices.empty() && !are_told && text.find(option.choices.back()) == std::string::npos)
    text += fmt::format(" One of {}.", fmt::join(option.choices, ", "));
  if (!option.default_value.empty()) text += fmt::format(" Default: {}.", option.default_value);
  return escape_roff(text);
}

std::string synopsis(const VerbHelp& verb) {
  const std::string start = verb.path.empty() ? "forksight" : "forksight " + verb.path;
  const bool has_start = verb.usage.starts_with(start);
  return has_start ? bold(start) + escape_roff(verb.usage.substr(start.size())) : escape_roff(verb.usage);
}

std::string entries(const std::vector<HelpEntry>& all) {
  std::string text;
  for (const HelpEntry& one : all) text += entry(bold(one.head), escape_roff(one.text));
  return text;
}

std::string description(const VerbHelp& verb) {
  std::string text = line(escape_roff(verb.description) + ".");
  for (const HelpParagraph& note : verb.notes) {
    text += ".PP\n";
    if (!note.text.empty()) text += line(escape_roff(note.text));
    text += entries(note.entries);
  }
  return text;
}

std::string verbs(const VerbHelp& verb) {
  std::string text;
  for (const VerbHelp& one : verb.verbs)
    text += entry(bold(page_name(one)) + "(1)", escape_roff(one.description) + ".");
  return text;
}

std::string options(const VerbHelp& verb) {
  std::string text;
  // The group "Options" gets no heading of its own, because the page already has the heading OPTIONS.
  std::string group = "Options";
  for (const OptionHelp& option : verb.options) {
    if (option.group != group) text += ".SS " + escape_roff(option.group) + "\n";
    group = option.group;
    text += entry(option_head(option), option_text(option));
  }
  return text;
}

// Returns references such as "forksight(1)" in roff, to the pages of the verbs above this verb and directly below this
// verb.
std::string see_also(const VerbHelp& verb) {
  std::vector<std::string> names;
  for (std::string name = page_name(verb); name.find('-') != std::string::npos;) {
    name.resize(name.rfind('-'));
    names.push_back(bold(name) + "(1)");
  }
  for (const VerbHelp& one : verb.verbs) names.push_back(bold(page_name(one)) + "(1)");
  return names.empty() ? "" : line(fmt::format("{}", fmt::join(names, ", ")));
}

std::string section(const char* title, const std::string& text) {
  return text.empty() ? "" : fmt::format(".SH {}\n{}", title, text);
}

}  // namespace

std::string page_name(const VerbHelp& verb) {
  std::string name = verb.path.empty() ? "forksight" : "forksight " + verb.path;
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string render_man_page(const VerbHelp& verb) {
  const std::string name = page_name(verb);
  std::string title = name;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::string page = ".\\\" Generated from the help of the command.\n";
  page += fmt::format(".TH {} 1 \"\" \"forksight {}\" \"forksight manual\"\n", escape_roff(title), FORKSIGHT_VERSION);
  // No hyphenation, no adjustment: options and commands stay as they are typed.
  page += ".nh\n.ad l\n";
  page += section("NAME", line(escape_roff(name) + " \\- " + escape_roff(verb.description)));
  page += section("SYNOPSIS", line(synopsis(verb)));
  page += section("DESCRIPTION", description(verb));
  page += section("VERBS", verbs(verb));
  page += section("OPTIONS", options(verb));
  page += section("EXAMPLES", entries(verb.examples));
  page += section("EXIT STATUS", verb.exit_status.empty() ? "" : line(escape_roff(verb.exit_status)));
  page += section("SEE ALSO", see_also(verb));
  return page;
}

}  // namespace forksight
