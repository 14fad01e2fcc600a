#include "command/queue_command.hpp"

#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

#include "command/exit_status.hpp"
#include "command/formatter.hpp"
#include "command/output.hpp"
#include "command/queue_bench.hpp"
#include "command/queue_find.hpp"
#include "command/queue_view.hpp"
#include "command/show_report.hpp"
#include "forksight/ipc/handover.hpp"

namespace forksight {
namespace {

constexpr char kQueueDescription[] = "Look at shared-memory queues, and remove those that were left behind";

constexpr char kQueueExamples[] = R"(Examples:
  forksight queue inspect 4242           the queues that process 4242 has open: who holds what, who is dead, who waits
  forksight queue inspect /forksight-0f3c...
                                         the same for a named queue
  forksight queue gc --dry-run           named queues that nobody uses any more
  forksight queue gc --watch NAME &      removes this queue as soon as its last user has ended, in whatever way
  forksight queue bench                  what a message costs on this machine

)";

constexpr char kQueueFooter[] = R"(
Exit status: 0 all went well, 2 invalid command line, 3 the queue could not be read.)";

struct QueueLine {
  std::string what;
  std::string format = "text";
  bool dry_run = false;
  std::string watched;
};

ExitStatus refuse(const ipc::error& why) {
  say_error(why.text);
  return ExitStatus::kUnreadable;
}

ExitStatus show(const std::string& text) {
  return write_out(text) ? ExitStatus::kNothingFound : ExitStatus::kUnreadable;
}

ExitStatus inspect_queues(const QueueLine& line) {
  auto found = find_queues(line.what);
  if (!found) return refuse(found.error());
  std::string text;
  nlohmann::json all = nlohmann::json::array();
  for (const ipc::snapshot& seen : *found) {
    if (line.format == "json") {
      all.push_back(queue_json(seen));
    } else {
      text += queue_text(seen);
    }
  }
  return show(line.format == "json" ? all.dump(2) + "\n" : text);
}

ExitStatus watch(const std::string& name) {
  auto removed = ipc::remove_when_unused(name.starts_with('/') ? name : "/" + name);
  if (!removed) return refuse(removed.error());
  return show(fmt::format("{} {}\n", *removed ? "removed" : "had been removed already:", name));
}

ExitStatus collect_garbage(const QueueLine& line) {
  if (!line.watched.empty()) return watch(line.watched);
  auto report = ipc::gc(line.dry_run);
  if (!report) return refuse(report.error());
  std::string text;
  for (const std::string& name : report->removed)
    text += fmt::format("{} {}\n", line.dry_run ? "left behind:" : "removed", name);
  for (const std::string& name : report->in_use) text += fmt::format("in use: {}\n", name);
  for (const std::string& name : report->skipped) text += fmt::format("left alone: {}\n", name);
  text += fmt::format("{} {}, {} in use\n", report->removed.size(), line.dry_run ? "left behind" : "removed",
                      report->in_use.size());
  return show(text);
}

ExitStatus bench() {
  auto text = queue_bench();
  return text ? show(*text) : refuse(text.error());
}

}  // namespace

void add_queue_command(CLI::App& app, int& status) {
  auto line = std::make_shared<QueueLine>();
  CLI::App* const verb = app.add_subcommand("queue", kQueueDescription);
  verb->formatter(std::make_shared<ExampleFormatter>("forksight queue inspect|gc|bench [OPTIONS]", kQueueExamples));
  verb->footer(kQueueFooter);
  verb->require_subcommand(1);

  CLI::App* const look =
      verb->add_subcommand("inspect", "Show who takes part, who holds which buffers for how long, and what was lost");
  look->add_option("QUEUE", line->what, "A pid, a name, or /proc/PID/fd/N")->required()->type_name("");
  add_format_option(*look, line->format);
  look->callback([line, &status] { status = as_int(inspect_queues(*line)); });

  CLI::App* const collect = verb->add_subcommand("gc", "Remove named queues that no process has open");
  collect->add_flag("--dry-run", line->dry_run, "Only list these queues; remove nothing");
  collect->add_option("--watch", line->watched, "Wait until no process has this queue open, then remove it")
      ->type_name("NAME")
      ->excludes("--dry-run");
  collect->callback([line, &status] { status = as_int(collect_garbage(*line)); });

  CLI::App* const measure =
      verb->add_subcommand("bench", "Measure what a message costs on this machine, by a queue and by a pipe");
  measure->callback([&status] { status = as_int(bench()); });
}

}  // namespace forksight
