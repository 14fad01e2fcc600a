// The help of each verb as data, read from the tables of CLI11 that parse the command line. Manual pages and
// completions are made from this data, so neither needs a list of options of its own.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace forksight {

enum class ValueKind { kNone, kAny, kChoice, kFile, kFolder, kProcess, kCommand };

struct OptionHelp {
  std::vector<std::string> names;  // "-q", "--quiet"; empty: a positional
  std::string value;               // as in the help: "SECONDS" or "text|json"; "" for a flag
  ValueKind kind = ValueKind::kNone;
  std::vector<std::string> choices;  // valid values; if `kind` is not kChoice, other values may be valid, too
  bool is_repeated = false;          // may be given again, or takes several words
  bool is_required = false;
  std::vector<std::string> excluded;  // options and arguments that cannot be given together with this one
  std::string description;
  std::string default_value;
  std::string group;

  bool is_positional() const { return names.empty(); }
};

// An example or a term of the help, such as "forksight why 4242", and what it means. The meaning may be empty.
struct HelpEntry {
  std::string head;
  std::string text;
};

// Either a text that is to be wrapped, or a list.
struct HelpParagraph {
  std::string text;
  std::vector<HelpEntry> entries;
};

struct VerbHelp {
  std::string path;  // "why", "suite run"; "" for the command itself
  std::string description;
  std::string usage;  // "forksight why [OPTIONS] PID|NAME..."
  std::vector<HelpEntry> examples;
  std::vector<HelpParagraph> notes;  // the footer without the paragraph about the exit status
  std::string exit_status;           // the paragraph "Exit status: ..."
  std::vector<OptionHelp> options;   // group by group
  std::vector<VerbHelp> verbs;

  std::string name() const { return path.substr(path.find(' ') + 1); }
};

// Returns the help of the verb `app` and of the verbs below it. `path` has the words that call it: "suite run".
VerbHelp read_help(const CLI::App& app, const std::string& path);

// Returns the help of the command and all its verbs. Leaves out verbs without a group: the help does not show them.
VerbHelp read_help_tables(const CLI::App& app);

// Returns `root` and all verbs below it, each verb before the verbs below it.
std::vector<const VerbHelp*> list_verbs(const VerbHelp& root);

// Splits a text of the help into paragraphs. An empty line ends a paragraph. A line that begins with exactly two spaces
// is an entry of a list: its head, then two or more spaces, then its text. The following lines that begin with more
// spaces continue the text of the entry. All other lines are plain text.
std::vector<HelpParagraph> read_paragraphs(const std::string& text);

}  // namespace forksight
