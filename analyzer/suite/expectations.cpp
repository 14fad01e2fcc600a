#include "suite/expectations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "suite/expectation_lines.hpp"
#include "suite/shell_words.hpp"

namespace forksight::suite {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr std::array<std::string_view, 4> kBare = {"hang", "spin", "error", "ok"};
constexpr std::array<std::string_view, 7> kFields = {"culprit", "lock",    "holder", "start",
                                                     "library", "victims", "merged"};
constexpr std::array<std::string_view, 3> kStacks = {"culprit", "stack", "fork"};
constexpr char kLibraries[] = "/usr/lib/x86_64-linux-gnu";

bool is_one_of(const auto& known, std::string_view word) { return std::ranges::find(known, word) != known.end(); }

// Splits "key=value" into key and value. The key is empty if there is no '='.
std::pair<std::string, std::string> split_field(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) return {"", word};
  return {word.substr(0, equals), word.substr(equals + 1)};
}

std::string trim(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r");
  if (start == std::string_view::npos) return "";
  return std::string(text.substr(start, text.find_last_not_of(" \t\r") - start + 1));
}

// Parses function@mark, or function@file:mark if the mark is in a file beside the source.
Result<ExpectedFrame> parse_frame(const std::string& text, const fs::path& source) {
  const std::size_t at = text.find('@');
  if (at == std::string::npos) return Error{fmt::format("frame {}: write function@mark", text)};
  const std::string place = text.substr(at + 1);
  const std::size_t colon = place.rfind(':');
  const fs::path where =
      colon == std::string::npos ? source : fs::path(source).replace_filename(place.substr(0, colon));
  const std::string mark = colon == std::string::npos ? place : place.substr(colon + 1);
  const auto marks = find_marks(where);
  if (!marks) return Error{marks.error()};
  const auto found = marks.value().find(mark);
  if (found == marks.value().end()) {
    return Error{fmt::format("frame {}: {} has no MARK {}", text, where.string(), mark)};
  }
  return ExpectedFrame{text.substr(0, at), where.filename().string(), found->second};
}

Result<ExpectedFinding> parse_finding(const Words& words) {
  if (words.size() < 3) return Error{"EXPECT: rule certainty outcome [field=value]"};
  ExpectedFinding finding{words[0], words[1], words[2], {}, {}};
  for (std::size_t index = 3; index < words.size(); ++index) {
    auto field = split_field(words[index]);
    const std::string& key = field.first;
    if (!is_one_of(kFields, key)) {
      return Error{fmt::format("EXPECT: {}: fields are {}", words[index], fmt::join(kFields, ", "))};
    }
    std::erase_if(finding.fields, [&](const auto& other) { return other.first == key; });
    finding.fields.push_back(std::move(field));
  }
  return finding;
}

// Parses a line EXPECT-CURED: options stdout="..."
Result<ExpectedRun> parse_cured(const Words& words) {
  ExpectedRun run;
  for (const std::string& word : words) {
    auto [key, value] = split_field(word);
    (key == "stdout" ? run.printed : run.options).push_back(key == "stdout" ? std::move(value) : word);
  }
  if (run.printed.empty()) return Error{"EXPECT-CURED: say what the cured program prints: stdout=\"...\""};
  return run;
}

// Parses a line EXPECT-RUN: options outcome=... status=... says="..." rule=...
Result<ExpectedRun> parse_run(const Words& words) {
  ExpectedRun run;
  Words outcomes;
  Words statuses;
  for (const std::string& word : words) {
    auto [key, value] = split_field(word);
    if (key == "stdout") {
      run.printed.push_back(std::move(value));
    } else if (key == "says") {
      run.says.push_back(std::move(value));
    } else if (key == "rule") {
      run.rule = std::move(value);
    } else if (key == "outcome") {
      outcomes.push_back(std::move(value));
    } else if (key == "status") {
      statuses.push_back(std::move(value));
    } else {
      run.options.push_back(word);
    }
  }
  const bool is_said = outcomes.size() == 1 && statuses.size() == 1;
  const char* const end = is_said ? statuses[0].data() + statuses[0].size() : nullptr;
  if (!is_said || std::from_chars(statuses[0].data(), end, run.status).ptr != end || run.status < 0 ||
      statuses[0].empty()) {
    return Error{"EXPECT-RUN: say how it ends: outcome=error status=134"};
  }
  run.outcome = outcomes[0];
  return run;
}

// Removes the position from a name: "name (2nd of 3)" -> "name".
std::string without_position(const std::string& culprit) {
  const std::size_t open = culprit.rfind(" (");
  if (open == std::string::npos || !culprit.ends_with(')')) return culprit;
  const std::string inside = culprit.substr(open + 2, culprit.size() - open - 3);
  const std::size_t of = inside.find(" of ");
  if (of == std::string::npos || of < 3) return culprit;
  const auto are_digits = [](std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](unsigned char one) { return std::isdigit(one) != 0; });
  };
  const bool is_position = are_digits(inside.substr(0, of - 2)) && are_digits(inside.substr(of + 4));
  return is_position ? culprit.substr(0, open) : culprit;
}

// Returns the finding that `why` must make if `run` must make `finding`. `why` did not watch the process. So `why` does
// not know where a lock was taken, where a pool was made, or how many handlers there are. `why` names a library by the
// name of its file.
ExpectedFinding from_outside(const ExpectedFinding& finding) {
  ExpectedFinding outside{finding.rule, finding.certainty, finding.outcome, finding.fields, {}};
  for (auto& [key, value] : outside.fields) {
    if (key == "culprit") value = without_position(value);
    if (key == "library") value = file_of_library(value);
  }
  for (const auto& stack : finding.stacks) {
    if (stack.first == "stack") outside.stacks.push_back(stack);
  }
  return outside;
}

// Reads one selected line into `expected`. An error is a sentence.
class LineReader {
 public:
  LineReader(const fs::path& source, Expectations& expected) : source_(source), expected_(expected) {}

  Result<bool> read(const ExpectLine& line) {
    const auto words = split_words(line.text);
    if (!words) return Error{fmt::format("{}:{}: {}", source_.string(), line.number, words.error())};
    const auto done = read_words(line, words.value());
    if (!done) return Error{fmt::format("{}:{}: {}", source_.string(), line.number, done.error())};
    return true;
  }
  bool is_silent() const { return is_silent_; }

 private:
  Result<bool> read_words(const ExpectLine& line, const Words& words) {
    if (line.kind == "-BARE") {
      expected_.bare = trim(line.text);
    } else if (line.kind == "-NONE") {
      is_silent_ = true;
    } else if (line.kind == "-UNKNOWN") {
      expected_.unknown = trim(line.text);
    } else if (line.kind.empty()) {
      return add(parse_finding(words), expected_.findings);
    } else if (line.kind == "-WHY") {
      if (words != Words{"none"}) return add(parse_finding(words), expected_.why);
    } else if (line.kind == "-CORE") {
      if (!expected_.core) expected_.core.emplace();
      if (words != Words{"none"}) return add(parse_finding(words), *expected_.core);
    } else if (line.kind == "-CURED") {
      return add(parse_cured(words), expected_.runs);
    } else if (line.kind == "-RUN") {
      return add(parse_run(words), expected_.runs);
    } else if (line.kind == "-STACK") {
      return add_stack(words);
    } else if (line.kind != "-OPTIONS") {  // read_options() reads these lines
      return Error{fmt::format("EXPECT{} is unknown", line.kind)};
    }
    return true;
  }

  template <class T>
  static Result<bool> add(Result<T> parsed, std::vector<T>& list) {
    if (!parsed) return Error{parsed.error()};
    list.push_back(std::move(parsed).value());
    return true;
  }

  Result<bool> add_stack(const Words& words) {
    if (expected_.findings.empty() || words.size() < 2 || !is_one_of(kStacks, words[0])) {
      return Error{"EXPECT-STACK: culprit|stack|fork function@mark..., after its EXPECT"};
    }
    std::vector<ExpectedFrame> frames;
    for (std::size_t index = 1; index < words.size(); ++index) {
      auto frame = parse_frame(words[index], source_);
      if (!frame) return Error{frame.error()};
      frames.push_back(std::move(frame).value());
    }
    auto& stacks = expected_.findings.back().stacks;
    std::erase_if(stacks, [&](const auto& stack) { return stack.first == words[0]; });
    stacks.emplace_back(words[0], std::move(frames));
    return true;
  }

  const fs::path& source_;
  Expectations& expected_;
  bool is_silent_ = false;
};

Result<Words> read_options(const std::vector<ExpectLine>& lines) {
  Words options;
  for (const ExpectLine& line : lines) {
    if (line.kind != "-OPTIONS") continue;
    auto words = split_words(line.text);
    if (!words) return words;
    options.insert(options.end(), words.value().begin(), words.value().end());
  }
  return options;
}

// Returns the expectations of the repaired variant, which do not depend on those of the broken variant: the program
// ends well, and no finding is reported. For each EXPECT-CURED(repaired) line of the source, the program is also run
// with the cures that the line names. The program does not need these cures, so they must change nothing.
Result<Expectations> read_repaired(const std::vector<ExpectLine>& lines) {
  Expectations expected;
  expected.bare = "ok";
  for (const ExpectLine& line : lines) {
    if (line.kind != "-CURED" || line.variant != "repaired") continue;
    const auto words = split_words(line.text);
    if (!words) return Error{words.error()};
    auto run = parse_cured(words.value());
    if (!run) return Error{run.error()};
    expected.runs.push_back(std::move(run).value());
  }
  return expected;
}

Result<Expectations> read_variant(const fs::path& source, const std::vector<ExpectLine>& lines) {
  Expectations expected;
  LineReader reader(source, expected);
  for (const ExpectLine& line : lines) {
    if (const auto done = reader.read(line); !done) return Error{done.error()};
  }
  if (!is_one_of(kBare, expected.bare)) {
    return Error{fmt::format("{}: EXPECT-BARE must say one of {}", source.string(), fmt::join(kBare, ", "))};
  }
  if (reader.is_silent() == !expected.findings.empty()) {
    return Error{fmt::format("{}: give either EXPECT: lines or EXPECT-NONE, not both", source.string())};
  }
  if (expected.why.empty() && expected.unknown.empty()) {
    std::ranges::transform(expected.findings, std::back_inserter(expected.why), from_outside);
  }
  return expected;
}

}  // namespace

std::string file_of_library(const std::string& soname) {
  const fs::path linked = fs::path(kLibraries) / soname;
  std::error_code error;
  const fs::path file = fs::canonical(linked, error);
  return (error ? linked : file).filename().string();
}

Result<Expectations> read_expectations(const fs::path& source, const std::string& variant) {
  const auto text = read_lines(source);
  if (!text) return Error{text.error()};
  const std::vector<ExpectLine> lines = find_expect_lines(text.value());
  auto options = read_options(lines);
  if (!options) return Error{fmt::format("{}: {}", source.string(), options.error())};
  auto expected = variant == "repaired" ? read_repaired(lines) : read_variant(source, select_lines(lines, variant));
  if (expected) expected->options = std::move(options).value();
  return expected;
}

}  // namespace forksight::suite
