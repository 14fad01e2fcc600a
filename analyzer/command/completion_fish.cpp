#include <fmt/format.h>

#include <string>
#include <vector>

#include "command/completion.hpp"

namespace forksight {
namespace {

std::string quote_for_fish(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

// Defines the shell function `__forksight_at`. For example, `__forksight_at 'suite run'` is true if the verbs on the
// line so far are `suite run` and no "--" comes after them.
std::string at_function(const std::vector<const VerbHelp*>& verbs) {
  std::string known;
  for (const VerbHelp* verb : verbs) {
    if (verb->path.empty()) continue;
    known += " " + quote_for_fish(verb->path.find(' ') == std::string::npos ? " " + verb->path : verb->path);
  }
  return fmt::format(R"(function __forksight_at
    set -l verb
    for word in (commandline -opc)[2..-1]
        switch "$verb $word"
            case{}
                set -a verb $word
            case '* --'
                return 1
        end
    end
    test "$verb" = "$argv"
end

)",
                     known);
}

// Returns the arguments of `complete` that offer the possible words of a value. With "-x", fish offers no files besides
// these words.
std::string words(const OptionHelp& option) {
  switch (option.kind) {
    case ValueKind::kNone: return "";
    case ValueKind::kFile: return " -r -F";
    case ValueKind::kFolder: return " -x -a '(__fish_complete_directories (commandline -ct))'";
    case ValueKind::kProcess: return " -x -a '(__fish_complete_pids)'";
    default: break;
  }
  return option.choices.empty() ? " -x" : fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
}

std::string condition(const VerbHelp& verb) {
  return quote_for_fish(fmt::format("__forksight_at {}", quote_for_fish(verb.path)));
}

std::string option_line(const VerbHelp& verb, const OptionHelp& option) {
  std::string names;
  for (const std::string& name : option.names)
    names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  return fmt::format("complete -c forksight -n {}{}{} -d {}\n", condition(verb), names, words(option),
                     quote_for_fish(option.description));
}

std::string verb_lines(const VerbHelp& verb) {
  std::string text;
  for (const VerbHelp& below : verb.verbs) {
    text += fmt::format("complete -c forksight -n {} -a {} -d {}\n", condition(verb), below.name(),
                        quote_for_fish(below.description));
  }
  bool has_positional = false;
  for (const OptionHelp& option : verb.options) {
    if (!option.is_positional()) text += option_line(verb, option);
    if (!option.is_positional() || has_positional || option.kind == ValueKind::kCommand) continue;
    has_positional = true;
    const std::string known = words(option);
    const bool is_file = option.kind == ValueKind::kFile;
    if (known != " -x")
      text += fmt::format("complete -c forksight -n {}{}\n", condition(verb), is_file ? " -F" : known.substr(3));
  }
  return text;
}

// After the "--" of a verb that runs a command, completes the words of that command as if they were a line of their
// own.
constexpr char kHasCommand[] = R"(function __forksight_has_command
    contains -- -- (commandline -opc)
end
function __forksight_complete_command
    set -l words (commandline -opc) (commandline -ct)
    set -l at (contains -i -- -- $words)
    set -l rest $words[(math $at + 1)..-1]
    complete -C "$rest"
end
complete -c forksight -n __forksight_has_command -x -a '(__forksight_complete_command)'

)";

}  // namespace

std::string render_fish_completion(const VerbHelp& root) {
  const std::vector<const VerbHelp*> verbs = list_verbs(root);
  std::string text = "# fish completion of forksight. Generated from the help of the command.\n\n" + at_function(verbs);
  text += "complete -c forksight -f\n" + std::string(kHasCommand);
  for (const VerbHelp* verb : verbs) text += verb_lines(*verb);
  return text;
}

}  // namespace forksight
