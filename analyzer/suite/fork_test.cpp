#include "suite/fork_test.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "render/findings_json.hpp"
#include "render/json.hpp"
#include "suite/compare.hpp"
#include "suite/processes.hpp"
#include "suite/program.hpp"
#include "suite/shell_words.hpp"

namespace forksight::suite {
namespace {

namespace fs = std::filesystem;
using Command = std::vector<std::string>;

constexpr char kVariable[] = "FORKSIGHT_FORK_TEST";
constexpr char kGreeting[] = "forksight-fork-test 1";
constexpr int kFound = 99;  // the exit status of a run that found something; fork_test.h has the other exit statuses
constexpr int kChildFailed = 1, kNoScene = 2, kParentFailed = 3;
constexpr std::chrono::seconds kListLimit{20};

// Sets an environment variable for as long as the object lives. Programs that are started in that time inherit the
// variable.
class Variable {
 public:
  explicit Variable(const std::string& value) { ::setenv(kVariable, value.c_str(), 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { ::unsetenv(kVariable); }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Returns lines about each finding of a report: the rule, what hangs, the library to blame, and the first fix. Empty if
// there is no report.
std::vector<std::string> describe_findings(const fs::path& file) {
  std::ifstream stream(file);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  std::vector<std::string> lines;
  const auto told = render::read_findings(render::kReportSchema, text);
  if (!told) return lines;
  for (const Finding& finding : told->findings) {
    lines.push_back(fmt::format("{} ({}): {}", finding.rule, certainty_of(finding), finding.summary));
    if (!finding.culprit.library.empty()) lines.push_back("  in " + finding.culprit.library);
    if (!finding.fixes.empty()) lines.push_back("  fix: " + finding.fixes.front().text);
    lines.push_back("  more: forksight explain " + finding.rule);
  }
  return lines;
}

std::string describe_end(std::optional<int> status, const CheckOptions& options) {
  if (!status) {
    return fmt::format("did not end within {:.1f} s, but it is not proven that it hangs",
                       std::chrono::duration<double>(options.limit).count());
  }
  switch (*status) {
    case kFound: return {};
    case kChildFailed: return "a forked child could not use the library";
    case kNoScene: return "the program says that it has no such scene";
    case kParentFailed: return "the program's use of the library failed before any fork, so no fork is the cause";
    default: break;
  }
  return *status > 128 ? fmt::format("killed by signal {}", *status - 128) : fmt::format("exit status {}", *status);
}

}  // namespace

Result<std::vector<Scene>> list_scenes(const Command& command, const CheckOptions& options) {
  const Variable list("list");
  const Captured said = capture(command, options.folder, "list", kListLimit);
  const std::vector<std::string> lines = lines_of(said.out);
  if (said.status != 0 || lines.empty() || lines.front() != kGreeting) {
    return Error{
        fmt::format("{}: is not a fork test: it does not answer to {}=list; build it with <forksight/fork_test.h>, or "
                    "run it once as it is with --as-is",
                    command.front(), kVariable)};
  }
  std::vector<Scene> scenes;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::size_t tab = lines[i].find('\t');
    scenes.push_back({lines[i].substr(0, tab), tab == std::string::npos ? "" : lines[i].substr(tab + 1)});
  }
  return scenes;
}

SceneResult play_scene(const Command& command, const Scene& scene, const CheckOptions& options) {
  SceneResult result;
  result.scene = scene;
  const fs::path folder = options.folder / (scene.name.empty() ? "as-is" : scene.name);
  fs::create_directories(folder);
  const auto start = Clock::now();

  Command run = {options.forksight.string(),
                 "run",
                 "--cure",
                 "none",
                 "--on-hang",
                 "kill",
                 "--kill-on",
                 "likely",
                 "--fail-on",
                 options.fail_on};
  run.insert(run.end(), {"--error-exitcode", std::to_string(kFound), "--out", (folder / "out").string(), "--format"});
  run.insert(run.end(), {"json", "--report", (folder / "report.json").string(), "--"});
  run.insert(run.end(), command.begin(), command.end());
  Command again = {"forksight", "run", "--cure", "none", "--"};
  again.insert(again.end(), command.begin(), command.end());
  result.command = (scene.name.empty() ? "" : fmt::format("{}={} ", kVariable, scene.name)) + join_words(again);

  std::optional<Variable> chosen;
  if (!scene.name.empty()) chosen.emplace(scene.name);
  Program program(run, folder, "program");
  const std::optional<int> status = program.wait(options.limit);
  std::vector<std::string> stacks;
  if (!status && !is_stopped()) stacks = describe_stacks(folder);
  program.end_all();
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  result.is_good = status == 0;
  if (result.is_good) return result;

  const auto add = [&](const std::vector<std::string>& more) {
    result.lines.insert(result.lines.end(), more.begin(), more.end());
  };
  if (std::string end = describe_end(status, options); !end.empty()) add({std::move(end)});
  add(describe_findings(folder / "report.json"));
  for (const std::string& line : lines_of(program.read_stderr())) {
    if (!line.empty() && !line.starts_with("forksight: ")) add({"| " + line});
  }
  add(stacks);
  return result;
}

}  // namespace forksight::suite
