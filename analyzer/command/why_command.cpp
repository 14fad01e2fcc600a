#include "command/why_command.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "command/formatter.hpp"
#include "command/guarded.hpp"
#include "command/output.hpp"
#include "command/progress.hpp"
#include "command/show_report.hpp"
#include "command/watch_signs.hpp"
#include "command/why_targets.hpp"
#include "diagnose/diagnose.hpp"
#include "diagnose/words.hpp"
#include "files/dead_places.hpp"
#include "files/error_output.hpp"
#include "image/refusal.hpp"
#include "inspect/live_tree.hpp"
#include "proc/proc_fs.hpp"
#include "symbols/debug_files.hpp"

namespace forksight {
namespace {

constexpr char kWhyDescription[] =
    "Explain processes that hang, with their whole trees; the processes need no preparation";

constexpr char kWhyExamples[] = R"(Examples:
  forksight why 4242                     who waits for whom, what the cause is, what to do
  forksight why gunicorn                 all processes of that name, and their trees
  forksight why 4242 4300 celery         several at once: one report
  forksight why --all                    every process of yours; as root, of the machine
  forksight why 4242 --watch             wait until a process of this tree hangs, then explain why
  forksight why 4242 --no-stop           use /proc alone, and stop no thread, not even for a moment

)";

constexpr char kWhyFooter[] = R"(
To read the registers of threads that are proven to be stuck, forksight stops each for some tens of microseconds, one at a
time. It does not stop a thread whose system call a stop would interrupt. forksight needs the right to trace the process: run it
as the same user, or as root. Where kernel.yama.ptrace_scope is 1, run it as root or from an ancestor of the process. Debug
information that is not on this machine is fetched from the servers that DEBUGINFOD_URLS names; for root only with
--debuginfod.

Exit status: 0 nothing found, 1 something found, 2 invalid command line, 3 the process could not be examined.)";

struct WhyLine {
  std::vector<std::string> targets;
  bool all = false;
  inspect::LiveTreeOptions options;
  bool no_stop = false;
  bool watch = false;
  bool locals = false;
  bool debuginfod = false;
  ReportStyle style;
};

constexpr std::chrono::seconds kWatchPace{1};

// Makes one line for each thread.
std::vector<std::string> describe_locals(const std::vector<inspect::PythonLocals>& locals) {
  std::vector<std::string> lines;
  for (const inspect::PythonLocals& one : locals) {
    std::string names;
    for (const std::string& name : one.names) names += (names.empty() ? "" : ", ") + name;
    const model::Frame& frame = one.frame;
    lines.push_back(fmt::format("thread {} of process {}, {} ({}:{}): {}", one.tid, one.pid, frame.function,
                                words::base_name(frame.file), frame.line, names));
  }
  return lines;
}

// True if the process has ended, even if it is still a zombie.
bool has_ended(const proc::ProcessKey& key) {
  const auto stat = proc::read_stat(key.pid);
  return !stat || stat->start_ticks != key.start_ticks || image::find_obstacle(key.pid).has_value();
}

std::string name_all(const std::vector<proc::ProcessKey>& keys) {
  constexpr std::size_t kMostNamed = 8;
  std::string text = keys.size() == 1 ? "process" : "processes";
  for (std::size_t i = 0; i < keys.size() && i < kMostNamed; ++i)
    text += fmt::format("{} {}", i == 0 ? "" : ",", keys[i].pid);
  return keys.size() > kMostNamed ? fmt::format("{} and {} more", text, keys.size() - kMostNamed) : text;
}

// Says what to do if nothing was found.
std::string describe_next(const WhyLine& line) {
  if (line.all) return {};
  return fmt::format("What to do next: follow \"could be ended by\" from process to process. The last one should have "
                     "acted, or it waits for time, for a person or for another machine. `forksight why {} --watch` "
                     "looks again until a hang is proven.",
                     fmt::join(line.targets, " "));
}

ExitStatus explain(const files::Reader& reader, const WhyLine& line) {
  const auto found = line.all ? Result(find_all_targets()) : find_targets(line.targets);
  if (!found) {
    say_error(found.error());
    return ExitStatus::kUnreadable;
  }
  std::vector<proc::ProcessKey> keys = found.value();
  if (keys.empty()) {
    say_error("--all: there is no process to look at, except for forksight itself and its ancestors");
    return ExitStatus::kUnreadable;
  }
  WatchSigns signs(line.all ? "all processes" : name_all(found.value()));
  std::vector<std::string> skipped;  // a sentence for each process that cannot be examined
  for (bool is_first = true;; is_first = false) {
    if (!is_first) std::erase_if(keys, has_ended);
    if (keys.empty()) {
      signs.clear();
      const bool is_one = found.value().size() == 1;
      files::write_error(fmt::format("forksight: {} {} ended; forksight did not see {} hang\n", name_all(found.value()),
                                     is_one ? "has" : "have", is_one ? "it" : "them"));
      return ExitStatus::kNothingFound;
    }
    Progress progress("looking at processes");
    inspect::LiveTreeOptions options = line.options;
    options.others.assign(keys.begin() + 1, keys.end());
    options.stop = !line.no_stop;
    // With --all, most processes are idle and healthy. The stacks of these processes would fill the report, so these
    // stacks are not looked up.
    options.of_idle = !line.all;
    options.progress = [&](std::size_t done, std::size_t total) { progress.show(done, total); };
    auto tree = inspect::look_at_tree(reader, keys.front().pid, options);
    progress.clear();
    if (!is_first && has_ended(keys.front())) continue;
    if (!tree && keys.size() > 1) {
      skipped.push_back(tree.error());
      keys.erase(keys.begin());
      continue;
    }
    if (!tree) {
      signs.clear();
      say_error(tree.error());
      return ExitStatus::kUnreadable;
    }
    std::vector<inspect::PythonLocals> locals;
    model::Model model = inspect::build_model(tree->subjects, line.locals ? &locals : nullptr);
    model.limits.insert(model.limits.end(), skipped.begin(), skipped.end());
    model.limits.insert(model.limits.end(), tree->limits.begin(), tree->limits.end());
    for (std::string& limit : files::describe_dead_places()) model.limits.push_back(std::move(limit));
    if (std::string limit = symbols::debuginfod_limit(); !limit.empty()) model.limits.push_back(std::move(limit));
    const bool is_over = !line.watch || !diagnose(model).empty();
    if (is_over) {
      signs.clear();
      const std::string failure = proc::find_resource_failure();
      if (!failure.empty()) model.limits.push_back(failure + ". The report may be incomplete for this reason");
      const ShownWaits waits = line.all ? ShownWaits::kUnexplained : ShownWaits::kAll;
      const ExitStatus shown = show_report(
          model, line.style, {.waits = waits, .locals = describe_locals(locals), .next = describe_next(line)});
      if (failure.empty() || shown != ExitStatus::kNothingFound) return shown;
      say_error(failure);  // forksight may have missed a hang because of this failure
      return ExitStatus::kUnreadable;
    }
    signs.tell(tree.value());
    std::this_thread::sleep_for(kWatchPace);
  }
}

}  // namespace

void add_why_command(CLI::App& app, int& status) {
  auto line = std::make_shared<WhyLine>();
  CLI::App* const verb = app.add_subcommand("why", kWhyDescription);
  verb->formatter(std::make_shared<ExampleFormatter>("forksight why [OPTIONS] PID|NAME...", kWhyExamples));
  verb->footer(std::string(kTestedHelp) + kWhyFooter);
  verb->add_option("PID", line->targets,
                   "The process that hangs, or the parent of those that do; or the id of a thread; or the name of a "
                   "program. May be given several times")
      ->check(CLI::Validator(
          [](std::string& word) {
            const bool is_number = !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
            const bool is_id = is_number && word.size() < 10 && std::stol(word) > 0;
            const bool is_option = word.starts_with('-');
            const bool is_wrong = word.empty() || is_option || (is_number && !is_id);
            return is_wrong ? fmt::format("\"{}\" is not a process id; give a process id, a thread id or a name", word)
                            : std::string();
          },
          ""))
      ->type_name("")
      ->group("What to look at");
  verb->add_flag("--all", line->all, "Every process of the user; for root, of the machine")->group("What to look at");
  verb->add_option("--depth", line->options.depth, "Generations of descendants to look at; all by default")
      ->check(CLI::Range(0, 1000).description(""))
      ->type_name("N")
      ->group("What to look at");
  verb->add_flag("--no-stop", line->no_stop, "Stop no thread: registers stay unknown, stacks may be incomplete")
      ->group("How to look");
  verb->add_flag(
          "--watch", line->watch,
          "Look again every second until something is found, or the process ends; shows whether the processes work")
      ->group("How to look");
  verb->add_flag(
          "--debuginfod", line->debuginfod,
          "Ask the servers in DEBUGINFOD_URLS for files that are not on this machine, even if forksight runs as root")
      ->group("How to look");
  add_style_options(*verb, line->style);
  verb->add_flag("--locals", line->locals,
                 "Name the variables of the innermost Python frames that hang; names only, in the text report")
      ->group("What comes out");
  verb->callback([line, &status] {
    if (line->all != line->targets.empty())
      throw CLI::ValidationError(line->all ? "--all" : "PID", line->all ? "names every process: leave out the others"
                                                                        : "is missing: name a process, or use --all");
    if (line->locals && line->style.format != "text")
      throw CLI::ValidationError("--locals", "is for --format text only");
    symbols::allow_debuginfod(line->debuginfod);
    GuardedOptions options{.examines_processes = true};
    if (line->watch) options.limit.reset();
    status = run_guarded([&](const files::Reader& reader) { return as_int(explain(reader, *line)); }, options);
  });
}

}  // namespace forksight
