#include "command/suite_check.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command/exit_status.hpp"
#include "command/formatter.hpp"
#include "command/output.hpp"
#include "command/words_after_dashes.hpp"
#include "render/printable.hpp"
#include "suite/fork_test.hpp"
#include "suite/processes.hpp"
#include "suite/program.hpp"

namespace forksight {
namespace {

namespace fs = std::filesystem;
using suite::Scene;
using suite::SceneResult;

constexpr char kCheckDescription[] = "Check that forked children can use a library that was used before the fork";

constexpr char kCheckExamples[] = R"(Examples:
  forksight suite check -- ./my_fork_test
                                      each scene of a program built with <forksight/fork_test.h>
  forksight suite check --scene main --scene thread -- ./my_fork_test
                                      only these two scenes
  forksight suite check --as-is -- python3 train.py --steps 1
                                      any program, once: it must end well, without a finding

)";

struct CheckLine {
  std::vector<std::string> scenes;
  std::vector<std::string> known;
  bool as_is = false;
  double timeout_s = 60;
  std::string fail_on = "likely";
  std::string format = "text";
  std::string keep;
  std::vector<std::string> ignored;  // CMD as CLI11 splits it; words_after_dashes() is used instead
  std::vector<std::string> command;
};

// The result of one scene, and whether --known names the scene.
struct Judged {
  SceneResult result;
  bool is_known = false;
  bool is_expected() const { return result.is_good != is_known; }
};

// The folder given by --keep, or else a temporary folder that the destructor removes.
class Folder {
 public:
  explicit Folder(const std::string& keep) : is_kept_(!keep.empty()) {
    if (is_kept_) {
      path_ = fs::absolute(keep);
      fs::create_directories(path_);
      return;
    }
    std::string name = (fs::temp_directory_path() / "forksight-check-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw fs::filesystem_error("mkdtemp", name, std::error_code(errno, std::generic_category()));
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    if (!is_kept_) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  bool is_kept_;
  fs::path path_;
};

std::string text_of(const Judged& judged) {
  const SceneResult& result = judged.result;
  const std::string name = result.scene.name.empty() ? "as it is" : result.scene.name;
  std::string text;
  const char* const word = judged.is_known ? (result.is_good ? "FIXED" : "known") : (result.is_good ? "ok" : "FAILED");
  text += fmt::format("{:<13} {:<7} {:5.1f} s  {}\n", name, word, result.seconds, result.scene.what);
  if (judged.is_expected()) return text;
  if (result.is_good) return text + "  is known to fail, but did not: remove it from --known\n";
  for (const std::string& line : result.lines) text += "  " + line + "\n";
  return text + "  again: " + result.command + "\n";
}

nlohmann::json json_of(const Judged& judged) {
  const SceneResult& result = judged.result;
  return {{"scene", result.scene.name}, {"what", result.scene.what}, {"good", result.is_good},
          {"known", judged.is_known},   {"seconds", result.seconds}, {"lines", result.lines},
          {"command", result.command}};
}

int refuse(ExitStatus status, const std::string& why) {
  say_error(why);
  return as_int(status);
}

// Returns the scenes that --scene names; without --scene, all scenes. The error names a scene that the program does not
// have.
Result<std::vector<Scene>> choose(const std::vector<Scene>& all, const CheckLine& line) {
  std::vector<Scene> chosen;
  for (const std::vector<std::string>* names : {&line.scenes, &line.known}) {
    for (const std::string& name : *names) {
      const auto found = std::ranges::find(all, name, &Scene::name);
      if (found == all.end()) {
        std::string there;
        for (const Scene& one : all) there += (there.empty() ? "" : ", ") + one.name;
        return Error{fmt::format("{}: no such scene; {} has {}", name, line.command.front(), there)};
      }
      if (names == &line.scenes) chosen.push_back(*found);
    }
  }
  return chosen.empty() ? all : chosen;
}

int check(const CheckLine& line) {
  if (suite::find_in_path(line.command.front()).empty())
    return refuse(ExitStatus::kUnreadable, line.command.front() + ": no such program");
  if (!suite::become_reaper()) return refuse(ExitStatus::kUnreadable, "the kernel refuses PR_SET_CHILD_SUBREAPER");
  suite::end_waits_at_sigterm();
  const Folder folder(line.keep);
  suite::CheckOptions options;
  options.forksight = fs::read_symlink("/proc/self/exe");
  options.folder = folder.path();
  options.fail_on = line.fail_on;
  options.limit = std::chrono::milliseconds(static_cast<long>(line.timeout_s * 1000));

  std::vector<Scene> scenes = {{"", "the program as it is"}};
  if (!line.as_is) {
    auto all = suite::list_scenes(line.command, options);
    if (!all) return refuse(ExitStatus::kUnreadable, all.error());
    auto chosen = choose(all.value(), line);
    if (!chosen) return refuse(ExitStatus::kUsage, chosen.error());
    scenes = std::move(chosen).value();
  }

  std::vector<Judged> all;
  bool is_told = true;
  for (const Scene& scene : scenes) {
    Judged judged{suite::play_scene(line.command, scene, options), std::ranges::count(line.known, scene.name) != 0};
    if (suite::is_stopped()) return refuse(ExitStatus::kUnreadable, "stopped before its end");
    if (line.format == "text") is_told &= write_out(text_of(judged));
    all.push_back(std::move(judged));
  }
  const auto red = std::ranges::count_if(all, [](const Judged& one) { return !one.is_expected(); });
  if (line.format == "json") {
    nlohmann::json report = {{"command", line.command}, {"scenes", nlohmann::json::array()}, {"failed", red}};
    for (const Judged& one : all) report["scenes"].push_back(json_of(one));
    is_told &= write_out(render::escape_json_controls(report.dump(2)) + "\n");
  } else if (scenes.size() > 1) {
    is_told &= write_out(red == 0 ? fmt::format("all {} as expected\n", all.size())
                                  : fmt::format("{} of {} not as expected\n", red, all.size()));
  }
  if (!is_told) return as_int(ExitStatus::kUnreadable);
  return as_int(red == 0 ? ExitStatus::kNothingFound : ExitStatus::kFindings);
}

}  // namespace

void add_suite_check(CLI::App& suite, int argc, const char* const* argv, int& status) {
  auto line = std::make_shared<CheckLine>();
  CLI::App* const verb = suite.add_subcommand("check", kCheckDescription);
  verb->formatter(
      std::make_shared<ExampleFormatter>("forksight suite check [OPTIONS] -- CMD [ARG...]", kCheckExamples));
  verb->add_option("CMD", line->ignored, "The program and its arguments, after \"--\"")->type_name(" ");
  verb->add_option("--scene", line->scenes, "Only this scene; may be given again")
      ->type_name("NAME")
      ->allow_extra_args(false);
  verb->add_option("--known", line->known,
                   "A scene that is known to fail: an error if it does not fail; may be given again")
      ->type_name("NAME")
      ->allow_extra_args(false);
  verb->add_flag("--as-is", line->as_is, "CMD is any program: run it once")->excludes("--scene")->excludes("--known");
  verb->add_option("--timeout", line->timeout_s, "Time limit for each scene, in seconds")
      ->check(CLI::Range(0.1, 86400.0).description(""))
      ->type_name("SECONDS")
      ->capture_default_str();
  verb->add_option("--fail-on", line->fail_on,
                   "The least certainty of a finding that makes the check fail; certain is another word for proven")
      ->check(CLI::IsMember(std::vector<std::string>{"proven", "certain", "likely", "possible"}).description(""))
      ->type_name("proven|likely|possible")
      ->capture_default_str();
  verb->add_option("--format", line->format, "json: one document at the end")
      ->check(CLI::IsMember(std::vector<std::string>{"text", "json"}).description(""))
      ->type_name("text|json")
      ->capture_default_str();
  verb->add_option("--keep", line->keep, "Leave traces, reports and outputs in this folder")->type_name("DIR");
  verb->callback([line, argc, argv, &status] {
    line->command = words_after_dashes(argc, argv);
    if (line->command.empty()) {
      throw CLI::ValidationError("no command; put it after \"--\": forksight suite check [OPTIONS] -- CMD [ARG...]");
    }
    status = check(*line);
  });
}

}  // namespace forksight
