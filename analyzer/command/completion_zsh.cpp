#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "command/completion.hpp"

namespace forksight {
namespace {

// Escapes the characters that have a meaning in a specification of _arguments: a bracket ends a description, a colon
// ends a part.
std::string escape_specification(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string function_name(const VerbHelp& verb) {
  std::string name = verb.path.empty() ? "_forksight" : "_forksight_" + verb.path;
  std::ranges::replace(name, ' ', '_');
  return name;
}

std::string action(const OptionHelp& option) {
  switch (option.kind) {
    case ValueKind::kFile: return "_files";
    case ValueKind::kFolder: return "_files -/";
    case ValueKind::kProcess: return "_pids";
    case ValueKind::kCommand: return "_command_names -e";
    default: break;
  }
  return option.choices.empty() ? " " : fmt::format("({})", fmt::join(option.choices, " "));
}

// Returns a line such as "'*--slug=[Where ...]:SLUG:(a b c)'" for each name of the option.
std::string option_lines(const OptionHelp& option) {
  std::string lines;
  for (const std::string& name : option.names) {
    const bool has_value = option.kind != ValueKind::kNone;
    const char* const joint = !has_value ? "" : name.starts_with("--") ? "=" : "+";
    std::string line = (option.is_repeated ? "*" : fmt::format("({})", fmt::join(option.names, " "))) + name + joint;
    line += "[" + escape_specification(option.description) + "]";
    if (has_value) line += ":" + escape_specification(option.value) + ":" + action(option);
    lines += " \\\n    " + quote_for_sh(line);
  }
  return lines;
}

std::string positional_line(const OptionHelp& option) {
  const std::string what = escape_specification(option.value);
  if (option.kind == ValueKind::kCommand) return " \\\n    " + quote_for_sh("*::" + what + ":_normal");
  return " \\\n    " + quote_for_sh((option.is_repeated ? "*:" : "1:") + what + ":" + action(option));
}

// After the "--" of a verb that runs a command, completes the words of that command as if they were a line of their
// own.
constexpr char kRunsCommand[] = R"(  local -i at=${words[(ie)--]}
  if ((at < CURRENT)); then
    shift at words
    ((CURRENT -= at))
    _normal
    return
  fi
)";

std::string verb_function(const VerbHelp& verb) {
  std::string text = fmt::format("{}() {{\n", function_name(verb));
  const auto runs = [](const OptionHelp& option) { return option.kind == ValueKind::kCommand; };
  if (std::ranges::any_of(verb.options, runs)) text += kRunsCommand;
  text += verb.verbs.empty() ? "  _arguments -s -S" : "  local curcontext=$curcontext state line\n  _arguments -C -S";
  for (const OptionHelp& option : verb.options)
    text += option.is_positional() ? positional_line(option) : option_lines(option);
  if (verb.verbs.empty()) return text + "\n}\n\n";
  text += " \\\n    '1: :->verb' '*:: :->words'\n  case $state in\n    verb)\n      local -a verbs=(\n";
  for (const VerbHelp& below : verb.verbs)
    text += "        " + quote_for_sh(below.name() + ":" + escape_specification(below.description)) + "\n";
  text += "      )\n      _describe -t verbs verb verbs\n      ;;\n    words)\n      case $line[1] in\n";
  for (const VerbHelp& below : verb.verbs)
    text += fmt::format("        {}) {} ;;\n", below.name(), function_name(below));
  return text + "      esac\n      ;;\n  esac\n}\n\n";
}

}  // namespace

std::string render_zsh_completion(const VerbHelp& root) {
  std::string text = "#compdef forksight\n# zsh completion of forksight. Generated from the help of the command.\n\n";
  for (const VerbHelp* verb : list_verbs(root)) text += verb_function(*verb);
  // When _forksight is called for the first time, zsh makes the whole file the body of this function. So the file must
  // end with a call of _forksight.
  return text + "_forksight \"$@\"\n";
}

}  // namespace forksight
