#include "command/queue_command.hpp"

#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

#include "command/exit_status.hpp"
#include "command/formatter.hpp"
#include "command/guarded.hpp"
#include "command/output.hpp"
#include "command/queue_bench.hpp"
#include "command/queue_find.hpp"
#include "command/queue_parked.hpp"
#include "command/queue_view.hpp"
#include "command/show_report.hpp"
#include "files/named_paths.hpp"
#include "forksight/ipc/handover.hpp"
#include "render/printable.hpp"

namespace forksight {
namespace {

constexpr char kQueueDescription[] =
    "Look at shared-memory queues, at what is parked in them, and remove those that were left behind";

constexpr char kQueueExamples[] = R"(Examples:
  forksight queue inspect 4242           the queues that process 4242 has open: who holds what, who is dead, who waits
  forksight queue inspect /forksight-0f3c...
                                         the same for a named queue
  forksight queue parked 4242            its parked messages: those that killed their consumers, or were parked by one
  forksight queue drain 4242 --to FOLDER each parked message into a file; then its buffer is free again
  forksight queue requeue 4242           parked messages go to the consumers again
  forksight queue gc --dry-run           named queues that nobody uses any more
  forksight queue gc --watch NAME &      removes this queue as soon as its last user has ended, in whatever way
  forksight queue bench                  what a message costs on this machine

)";

constexpr char kQueueFooter[] = R"(
Exit status: 0 all went well, 2 invalid command line, 3 the queue could not be read, or a message not be drained.)";

struct QueueLine {
  std::string what;
  std::string format = "text";
  std::string folder;
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

// Names of processes may contain any bytes. Bytes that are not UTF-8 are replaced.
std::string json_text(const nlohmann::json& json) {
  return render::escape_json_controls(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)) + "\n";
}

ExitStatus inspect_queues(const files::Reader& reader, const QueueLine& line) {
  auto found = find_queues(reader, line.what);
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
  return show(line.format == "json" ? json_text(all) : text);
}

ExitStatus list_parked(const files::Reader& reader, const QueueLine& line) {
  auto found = find_queues(reader, line.what);
  if (!found) return refuse(found.error());
  if (line.format == "text") return show(parked_text(*found));
  nlohmann::json all = nlohmann::json::array();
  for (const ipc::snapshot& seen : *found) all.push_back(parked_json(seen));
  return show(json_text(all));
}

ExitStatus drain(const QueueLine& line) {
  auto done = drain_parked(line.what, line.folder);
  return done ? ExitStatus::kNothingFound : refuse(done.error());
}

ExitStatus requeue(const QueueLine& line) {
  auto count = requeue_parked(line.what);
  return count ? show(fmt::format("{} requeued\n", count_messages(*count))) : refuse(count.error());
}

ExitStatus watch(const std::string& name) {
  auto removed = ipc::remove_when_unused(queue_name(name));
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

void add_queue_argument(CLI::App& verb, QueueLine& line) {
  verb.add_option("QUEUE", line.what, "A pid, a name, or /proc/PID/fd/N")->required()->type_name("");
}

// Notes that the caller has named this file. So the file may be opened even if it turns out not to be a queue.
void name_queue(const std::string& what) {
  files::name_path(what.starts_with("/proc/") ? what : "/dev/shm" + queue_name(what));
}

}  // namespace

void add_queue_command(CLI::App& app, int& status) {
  auto line = std::make_shared<QueueLine>();
  CLI::App* const verb = app.add_subcommand("queue", kQueueDescription);
  verb->formatter(std::make_shared<ExampleFormatter>("forksight queue inspect|parked|drain|requeue|gc|bench [OPTIONS]",
                                                     kQueueExamples));
  verb->footer(kQueueFooter);
  verb->require_subcommand(1);

  CLI::App* const look =
      verb->add_subcommand("inspect", "Show who takes part, who holds which buffers for how long, and what was lost");
  add_queue_argument(*look, *line);
  add_format_option(*look, line->format);
  look->callback([line, &status] {
    name_queue(line->what);
    status = run_guarded([&](const files::Reader& reader) { return as_int(inspect_queues(reader, *line)); });
  });

  CLI::App* const parked = verb->add_subcommand("parked", "List parked messages, and the consumers that they killed");
  add_queue_argument(*parked, *line);
  add_format_option(*parked, line->format);
  parked->callback([line, &status] {
    name_queue(line->what);
    status = run_guarded([&](const files::Reader& reader) { return as_int(list_parked(reader, *line)); });
  });

  CLI::App* const drainer = verb->add_subcommand("drain", "Write parked messages into files, and free their buffers");
  add_queue_argument(*drainer, *line);
  drainer->add_option("--to", line->folder, "The folder for the files, which must exist; no file is overwritten")
      ->required()
      ->check([](const std::string& folder) { return folder.empty() ? std::string("names no folder") : std::string(); })
      ->type_name("DIR");
  drainer->callback([line, &status] { status = as_int(drain(*line)); });

  CLI::App* const again = verb->add_subcommand("requeue", "Let consumers receive parked messages again");
  add_queue_argument(*again, *line);
  again->callback([line, &status] { status = as_int(requeue(*line)); });

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
