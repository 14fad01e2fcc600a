#include <fmt/format.h>

#include <string>
#include <vector>

#include "command/completion.hpp"

namespace forksight {
namespace {

constexpr char kHead[] = R"SH(# bash completion of forksight. Generated from the help of the command.

# Prints the ids of all processes.
_forksight_pids() {
  local folder
  for folder in /proc/[0-9]*; do echo "${folder##*/}"; done
}

# Completes the word $1. The other arguments are options of compgen: they say which words are possible.
_forksight_reply() {
  mapfile -t COMPREPLY < <(compgen "${@:2}" -- "$1")
}

)SH";

constexpr char kBody[] = R"SH(
_forksight() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb='' i
  COMPREPLY=()
  # bash splits "--format=text" into three words.
  if [[ $word == '=' ]]; then
    word=''
  elif [[ $before == '=' ]] && ((COMP_CWORD >= 2)); then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      _forksight_command "$verb" "$i" "$word"
      return
    fi
    _forksight_is_verb "$verb ${COMP_WORDS[i]}" && verb="${verb:+$verb }${COMP_WORDS[i]}"
  done
  _forksight_value "$verb $before" "$word" && return
  if [[ $word == -* ]]; then
    _forksight_reply "$word" -W "$(_forksight_options "$verb")"
  else
    _forksight_words "$verb" "$word"
  fi
}
complete -F _forksight forksight
)SH";

// Returns the options of compgen that complete a value of this kind; "" if no completion is known for this kind.
std::string generator(const OptionHelp& option) {
  switch (option.kind) {
    case ValueKind::kFile: return "-f";
    case ValueKind::kFolder: return "-d";
    case ValueKind::kProcess: return "-W \"$(_forksight_pids)\"";
    default: break;
  }
  return option.choices.empty() ? "" : fmt::format("-W $'{}'", fmt::join(option.choices, "\\n"));
}

std::string complete_line(const OptionHelp& option) {
  const bool is_path = option.kind == ValueKind::kFile || option.kind == ValueKind::kFolder;
  const std::string words = generator(option);
  return words.empty()
             ? ""
             : fmt::format("{}_forksight_reply \"$2\" {}", is_path ? "compopt -o filenames 2>/dev/null; " : "", words);
}

std::string verb_test(const std::vector<const VerbHelp*>& verbs) {
  std::string known;
  for (const VerbHelp* verb : verbs) {
    if (verb->path.empty()) continue;
    known += (known.empty() ? "" : " | ") +
             quote_for_sh(verb->path.find(' ') == std::string::npos ? " " + verb->path : verb->path);
  }
  return fmt::format("_forksight_is_verb() {{\n  case $1 in\n    {}) return 0 ;;\n  esac\n  return 1\n}}\n", known);
}

// Returns a shell function that prints the options of a verb.
std::string option_lists(const std::vector<const VerbHelp*>& verbs) {
  std::string text = "\n_forksight_options() {\n  case $1 in\n";
  for (const VerbHelp* verb : verbs) {
    std::vector<std::string> names;
    for (const OptionHelp& option : verb->options) names.insert(names.end(), option.names.begin(), option.names.end());
    text += fmt::format("    {}) printf '%s\\n' {} ;;\n", quote_for_sh(verb->path), fmt::join(names, " "));
  }
  return text + "  esac\n}\n";
}

// Returns a shell function that completes the value of an option. The shell function returns 1 if the word before the
// completed word is not an option that takes a value.
std::string value_lists(const std::vector<const VerbHelp*>& verbs) {
  std::string text = "\n_forksight_value() {\n  case $1 in\n";
  for (const VerbHelp* verb : verbs) {
    for (const OptionHelp& option : verb->options) {
      if (option.is_positional() || option.kind == ValueKind::kNone) continue;
      std::vector<std::string> keys;
      for (const std::string& name : option.names) keys.push_back(quote_for_sh(verb->path + " " + name));
      const std::string line = complete_line(option);
      text += fmt::format("    {}) {} ;;\n", fmt::join(keys, " | "), line.empty() ? ":" : line);
    }
  }
  return text + "    *) return 1 ;;\n  esac\n  return 0\n}\n";
}

// Returns a shell function that completes a word that is neither an option nor its value: a verb, or a positional
// argument.
std::string word_lists(const std::vector<const VerbHelp*>& verbs) {
  std::string text = "\n_forksight_words() {\n  case $1 in\n";
  for (const VerbHelp* verb : verbs) {
    std::string line;
    for (const OptionHelp& option : verb->options) {
      if (option.is_positional() && line.empty()) line = complete_line(option);
    }
    std::vector<std::string> names;
    for (const VerbHelp& below : verb->verbs) names.push_back(below.name());
    if (!names.empty()) line = fmt::format("_forksight_reply \"$2\" -W $'{}'", fmt::join(names, "\\n"));
    if (!line.empty()) text += fmt::format("    {}) {} ;;\n", quote_for_sh(verb->path), line);
  }
  return text + "  esac\n}\n";
}

// Returns a shell function for the words after the "--" of a verb that runs a command. The shell function completes
// these words as if they were a line of their own.
std::string command_lines(const std::vector<const VerbHelp*>& verbs) {
  std::string keys;
  for (const VerbHelp* verb : verbs) {
    for (const OptionHelp& option : verb->options) {
      if (option.kind == ValueKind::kCommand) keys += (keys.empty() ? "" : " | ") + quote_for_sh(verb->path);
    }
  }
  return fmt::format(R"SH(
_forksight_command() {{
  case $1 in
    {}) ;;
    *) return ;;
  esac
  if declare -F _command_offset >/dev/null; then
    _command_offset $(($2 + 1))
  elif ((COMP_CWORD == $2 + 1)); then
    _forksight_reply "$3" -c
  else
    compopt -o filenames 2>/dev/null
    _forksight_reply "$3" -f
  fi
}}
)SH",
                     keys);
}

}  // namespace

std::string quote_for_sh(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string render_bash_completion(const VerbHelp& root) {
  const std::vector<const VerbHelp*> verbs = list_verbs(root);
  return kHead + verb_test(verbs) + option_lists(verbs) + value_lists(verbs) + word_lists(verbs) +
         command_lines(verbs) + kBody;
}

}  // namespace forksight
