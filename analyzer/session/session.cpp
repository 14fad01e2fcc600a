#include "session/session.hpp"

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "collect/load.hpp"
#include "diagnose/diagnose.hpp"
#include "diagnose/evidence.hpp"
#include "inspect/live_tree.hpp"
#include "proc/launch.hpp"
#include "proc/namespaces.hpp"
#include "proc/proc_fs.hpp"
#include "session/exit.hpp"
#include "session/history.hpp"
#include "session/kill.hpp"
#include "session/lost_signals.hpp"
#include "session/open_calls.hpp"
#include "session/outside.hpp"
#include "session/preload.hpp"
#include "session/preload_link.hpp"
#include "session/python.hpp"
#include "session/report.hpp"
#include "session/rest.hpp"
#include "session/rights.hpp"
#include "session/run_folder.hpp"
#include "session/said.hpp"
#include "session/signals.hpp"
#include "session/trace_news.hpp"
#include "session/worth.hpp"
#include "watch/supervisor.hpp"

namespace forksight {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPace{250};
constexpr int kSearchShare = 200;  // a search for processes that lost their parent may take one part in so many of the time
constexpr int kLoadShare = 50;     // so may the reading of growing traces
class Session {
 public:
  Session(const RunOptions& options, RunReport& report, RunFolder folder, const RunSignals& signals, pid_t command)
      : options_(options),
        report_(report),
        folder_(std::move(folder)),
        signals_(signals),
        supervisor_(command, options.hang_after),
        history_(options.command),
        rights_(folder_.path()),
        news_(folder_.path()),
        command_pid_(command) {
    const auto member = supervisor_.tree().living().find(command);
    if (member != supervisor_.tree().living().end()) {
      command_ = member->second.key;
      history_.note_command(member->second);
    }
  }

  void add_limit(const std::string& sentence) { history_.add_limit(sentence); }

  int run() {
    Clock::time_point next_look = Clock::now() + kPace;
    while (!status_ && !given_up_) {
      if (const auto signal = signals_.wait(next_look)) {
        handle(*signal);
        continue;
      }
      look();
      // A look that took long, or a stopped machine, is not made up for.
      next_look = std::max(next_look + kPace, Clock::now() + kPace / 2);
    }
    return finish();
  }

 private:
  struct Diagnosis {
    model::Model model;
    std::vector<Finding> findings;
    std::vector<std::string> unexplained;
  };

  void look() {
    follow_traces();
    look_for_orphans();
    const auto now = Clock::now();
    supervisor_.poll(now);
    note(supervisor_.verdicts(), now);
    rest_.follow(supervisor_, now);
    for (const std::string& sentence : rights_.look(supervisor_)) history_.add_limit(sentence);
    if (has_news(now)) {
      // Who waits for it is told with it, however short a time.
      supervisor_.poll_at_any_age(now);
      note(supervisor_.verdicts(), now);
      if (has_news(now)) report_stuck(supervisor_.verdicts());
    }
    if (killing_) kill_tree();
  }

  bool has_news(Clock::time_point now) const {
    const Verdicts& verdicts = supervisor_.verdicts();
    return std::any_of(verdicts.begin(), verdicts.end(), [&](const auto& entry) {
      return now - entry.second.since >= options_.hang_after && !was_reported(entry.second);
    });
  }

  // One of which only threads were stuck is news once all of it is.
  bool was_reported(const watch::Verdict& verdict) const {
    const auto known = reported_.find(verdict.key);
    if (known == reported_.end()) return false;
    return known->second != model::Liveness::kAwake || verdict.liveness == model::Liveness::kAwake;
  }

  void note(const Verdicts& verdicts, Clock::time_point now) {
    for (const proc::ProcessKey& key : history_.note(supervisor_, verdicts, now)) take_back(key);
  }

  void take_back(const proc::ProcessKey& key) {
    reported_.erase(key);
    outside_.forget(key);
    if (const auto gone = said_.take_back(key); !gone.empty()) report_.take_back(key.pid, gone);
  }

  void report_stuck(const Verdicts& verdicts) {
    for (const auto& [key, verdict] : verdicts) reported_[key] = verdict.liveness;
    const auto quick = load_quickly(folder_);
    if (quick) request_python_stacks(quick.value(), verdicts, supervisor_);
    const std::optional<model::Model> seen = look_at_hang(verdicts, quick ? quick.value() : model::Model());
    if (seen) history_.note_look(*seen);
    write_log();
    const Diagnosis diagnosis = diagnose_folder(seen);
    said_.note(verdicts, diagnosis.model, diagnosis.findings);
    report_.say(diagnosis.model, diagnosis.findings, diagnosis.unexplained);
    const bool may_kill = options_.on_hang == OnHang::kKill;
    if (may_kill && has_hang_to_end(verdicts, diagnosis.model, diagnosis.findings, options_.kill_on)) killing_ = true;
  }

  // The processes of the run as `forksight why` sees them, before anything is ended. Who may be meant to wait is not
  // stopped for it, as a stop ends some system calls; but one that waits for what its fork broke is not meant to.
  std::optional<model::Model> look_at_hang(const Verdicts& verdicts, const model::Model& traced) const {
    std::set<std::int32_t> broken;
    for (const model::Touch& touch : traced.touches) {
      if (is_open_hazard(touch)) broken.insert(traced.processes[touch.process].pid);
    }
    const bool has_hang = std::ranges::any_of(
        verdicts, [&](const auto& entry) { return entry.second.ways_out.empty() || broken.contains(entry.first.pid); });
    if (!has_hang || status_) return std::nullopt;
    inspect::LiveTreeOptions options;
    options.may_stop_idle = [&](std::int32_t pid) { return broken.contains(pid); };
    options.others = find_orphans();
    options.own_signals = supervisor_.own_signals();
    const auto tree = inspect::look_at_tree(command_pid_, options);
    if (!tree) return std::nullopt;
    return inspect::build_model(tree->subjects);
  }

  // What the traces say about processes to look at: those that the walk did not meet, and threads that may be spinning.
  void follow_traces() {
    if (news_.arrived()) has_unread_traces_ = true;
    const auto start = Clock::now();
    if (!has_unread_traces_ || start < next_load_) return;
    has_unread_traces_ = false;
    const auto model = load_quickly(folder_);
    if (model) {
      adopt(model.value());
      follow_touches(model.value());
      follow_python(model.value());
      follow_calls(model.value());
      supervisor_.set_lost_signals(find_lost_signals(model.value()));
      history_.follow_ends(model.value());
    }
    next_load_ = Clock::now() + (Clock::now() - start) * kLoadShare;
  }

  // A process may fork and end between two walks: its child has another parent by then, and need not write a trace.
  void look_for_orphans() {
    const auto start = Clock::now();
    const std::size_t forks = supervisor_.tree().forks();
    if (forks == forks_ || start < next_search_) return;
    forks_ = forks;
    for (const std::int32_t pid : proc::list_numbers("/proc").numbers) {
      if (supervisor_.tree().living().contains(pid)) continue;
      const auto stat = proc::read_stat(pid);
      const bool is_younger = stat && stat->start_ticks >= command_.start_ticks && pid != ::getpid();
      if (is_younger && has_our_mark(pid)) supervisor_.tree().adopt({pid, stat->start_ticks});
    }
    next_search_ = Clock::now() + (Clock::now() - start) * kSearchShare;
  }

  // Its environment names the folder of this run.
  bool has_our_mark(std::int32_t pid) const {
    // With its end: another run's folder may begin with the name of this one.
    const std::string mark = fmt::format("FORKSIGHT_OUT={}", folder_.path().string()) + '\0';
    return proc::read_environment(pid).find(mark) != std::string::npos;
  }

  // Members of the run that do not descend from CMD any more.
  std::vector<proc::ProcessKey> find_orphans() const {
    std::set<std::int32_t> below;
    for (const proc::ProcessKey& key : supervisor_.tree().descendants()) below.insert(key.pid);
    std::vector<proc::ProcessKey> orphans;
    for (const auto& [pid, member] : supervisor_.tree().living()) {
      if (!below.contains(pid)) orphans.push_back(member.key);
    }
    return orphans;
  }

  void adopt(const model::Model& model) {
    for (const model::Process& process : model.processes) {
      if (process.pid <= 0 || supervisor_.tree().living().contains(process.pid)) continue;
      const auto stat = proc::read_stat(process.pid);
      if (!stat) continue;
      // A forked child's start is not in the trace: its environment must say that it is one of ours.
      const bool is_ours =
          process.start_ticks != 0 ? process.start_ticks == stat->start_ticks : has_our_mark(process.pid);
      if (is_ours) supervisor_.tree().adopt({process.pid, stat->start_ticks});
    }
  }

  void follow_python(const model::Model& model) {
    std::map<std::int32_t, watch::OwnSignal> signals;
    for (const model::Process& process : model.processes) {
      if (process.python_signal != 0) signals[process.pid] = {process.python_signal, process.shim_start};
    }
    supervisor_.set_own_signals(std::move(signals));
  }

  void follow_touches(const model::Model& model) {
    std::vector<watch::OpenTouch> open;
    for (const model::Touch& touch : model.touches) {
      // MPI spins for every message that it waits for.
      const bool may_spin = !touch.returned && !touch.timed && !touch.cured &&
                            touch.action == model::TouchAction::kNone && touch.kind != model::TouchKind::kMpiCall;
      if (may_spin && touch.process < model.processes.size())
        open.push_back({model.processes[touch.process].pid, touch.tid});
    }
    supervisor_.set_touches(open);
  }

  void follow_calls(const model::Model& model) {
    std::vector<watch::StalledCall> calls = find_open_handlers(model);
    // A handler that comes back changes its record in place, which is no news.
    has_unread_traces_ = has_unread_traces_ || !calls.empty();
    for (const watch::StalledCall& wait : find_timer_waits(model)) calls.push_back(wait);
    supervisor_.set_stalled(calls);
  }

  void write_log() {
    const auto written = collect::write_run_log(folder_.path(), history_.log(supervisor_));
    if (!written) report_.note(written.error());
  }

  Diagnosis diagnose_folder(const std::optional<model::Model>& seen) {
    Diagnosis result;
    auto model = collect::load_run({folder_.path()});
    if (model) {
      result.model = std::move(model).value();
    } else {
      collect::merge_run_log(result.model, history_.log(supervisor_));
      result.model.limits.push_back(model.error());
    }
    result.findings = diagnose(result.model);
    if (seen) outside_.keep(*seen, result.model, result.findings);
    outside_.add_to(result.model, result.findings);
    if (const std::string problem = outside_.write(folder_.path()); !problem.empty()) report_.note(problem);
    result.unexplained = find_unexplained(result.model, result.findings);
    return result;
  }

  void handle(const signalfd_siginfo& info) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) {
      reap();
      return;
    }
    // The terminal and the kernel send to the whole process group, CMD included; kill(1) meant CMD, and found us.
    const bool by_process = info.ssi_code <= 0;
    const bool ends = signal == SIGINT || signal == SIGQUIT || signal == SIGTERM || signal == SIGHUP;
    was_told_to_end_ = was_told_to_end_ || ends;
    const bool hangs = ends && report_before_the_end();
    const bool is_interrupt = signal == SIGINT || signal == SIGQUIT;
    if (is_interrupt) report_rest(by_process);
    if (hangs && is_interrupt && ++interrupts_ > 1) {
      given_up_ = true;
      status_on_giving_up_ = signal;
      return;
    }
    if (by_process) send_signal(command_, signal);
  }

  // CMD may be on its way out already: what the latest look proved of it still counts. True if something hangs.
  bool report_before_the_end() {
    Verdicts stuck = supervisor_.verdicts();
    supervisor_.poll_at_any_age(Clock::now());
    std::erase_if(stuck, [&](const auto& entry) {
      return !supervisor_.verdicts().contains(entry.first) && !proc::is_ending(entry.first);
    });
    for (const auto& [key, verdict] : supervisor_.verdicts()) stuck[key] = verdict;
    if (stuck.empty()) return false;
    note(stuck, Clock::now());
    const bool was_said =
        std::all_of(stuck.begin(), stuck.end(), [&](const auto& entry) { return was_reported(entry.second); });
    if (was_said) {
      report_.note("still hung, as reported above");
    } else {
      report_stuck(stuck);
    }
    return true;
  }

  // Of processes that wait, though nothing proves that they hang, and of which no finding told: what for. Once a run.
  // `is_ours_alone`: nothing but forksight has got the signal, so that all is as it was.
  void report_rest(bool is_ours_alone) {
    if (was_rest_told_ || !rest_.is_at_rest()) return;
    std::optional<model::Model> seen;
    if (is_ours_alone && !proc::is_ending(command_)) seen = look_at_rest();
    const std::set<proc::ProcessKey> stuck = find_told();
    std::vector<model::ProcessId> resting = find_resting(rest_.waits(), stuck);
    const std::vector<model::ProcessId> now = seen ? find_resting(*seen, stuck) : std::vector<model::ProcessId>();
    // Some may have got the signal all the same, and be gone.
    const bool is_whole = seen && now.size() >= resting.size();
    const model::Model& told = is_whole ? *seen : rest_.waits();
    if (is_whole) resting = now;
    if (resting.empty()) return;
    was_rest_told_ = true;
    report_.say_waits(told, resting);
  }

  // A report told why these hang, or that nobody knows it. Of one that goes on it told of threads.
  std::set<proc::ProcessKey> find_told() const {
    std::set<proc::ProcessKey> told;
    for (const auto& [key, liveness] : reported_) {
      if (liveness != model::Liveness::kAwake) told.insert(key);
    }
    return told;
  }

  // As `forksight why --no-stop` sees it, places included.
  std::optional<model::Model> look_at_rest() const {
    inspect::LiveTreeOptions options;
    options.stop = false;
    options.of_idle = true;
    options.others = find_orphans();
    options.own_signals = supervisor_.own_signals();
    const auto tree = inspect::look_at_tree(command_pid_, options);
    if (!tree) return std::nullopt;
    model::Model seen = inspect::build_model(tree->subjects);
    // What is beside the run, and has the other end of something, is no part of it.
    for (model::Process& process : seen.processes) {
      if (!supervisor_.tree().living().contains(process.pid)) process.waits.clear();
    }
    return seen;
  }

  // As process 1 of a container we get orphans, too.
  void reap() {
    for (;;) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid < 0 && errno == EINTR) continue;
      if (pid <= 0) return;
      if (pid != command_pid_) continue;
      status_ = status;
      if (history_.note_end(command_, status, !killing_ && !was_told_to_end_ && WIFEXITED(status))) take_back(command_);
    }
  }

  void kill_tree() {
    supervisor_.tree().refresh();
    for (const proc::ProcessKey& key : find_targets(supervisor_.tree().descendants(), supervisor_.verdicts())) {
      send_signal(key, SIGKILL);
      history_.note_kill(key);
    }
  }

  int finish() {
    if (given_up_) reap();
    follow_traces_to_the_end();
    supervisor_.poll_at_any_age(Clock::now());
    note(supervisor_.verdicts(), Clock::now());
    if (killing_) kill_tree();
    Diagnosis diagnosis;
    auto nameless = load_nameless(folder_);
    const bool is_over = !history_.has_stuck() && supervisor_.tree().living().empty();
    if (is_over && nameless && is_dull(*nameless)) folder_.remove_traces();
    const bool has_evidence = folder_.has_traces() || history_.has_stuck();
    if (has_evidence) {
      write_log();
      diagnosis = is_clean(nameless) ? Diagnosis{std::move(*nameless), {}, {}} : diagnose_folder(std::nullopt);
    } else {
      collect::merge_run_log(diagnosis.model, history_.log(supervisor_));
    }
    if (status_ && !killing_) report_.note_end(*status_);
    for (const auto& [pid, gone] : said_.take_back_unproven(diagnosis.findings)) report_.take_back(pid, gone);
    fails_ = said_.has_at_least(options_.fail_on, diagnosis.findings);
    const bool keeps_folder = has_evidence || !diagnosis.findings.empty();
    if (!keeps_folder) folder_.remove_if_empty();
    report_.say_last(diagnosis.model, diagnosis.findings, diagnosis.unexplained);
    if (keeps_folder) remove_older_runs();
    // Short-lived processes are known by their traces alone.
    const std::size_t processes = std::max(supervisor_.tree().seen(), diagnosis.model.processes.size());
    report_.say_summary(diagnosis.model, diagnosis.findings, diagnosis.unexplained.size(), processes,
                        keeps_folder ? folder_.shown() : fs::path());
    if (report_.has_failed()) return kRunFailed;
    return exit_status(options_, fails_, status_.value_or(status_on_giving_up_));
  }

  void remove_older_runs() {
    const bool is_asked = options_.keep.has_value();
    if (folder_.root().empty() || (!is_asked && !options_.out.empty())) return;
    KeepOptions keep;
    keep.bounds = is_asked ? *options_.keep : read_keep_bounds(kDefaultKeep).value();
    keep.keeps_ranks = !is_asked;
    const std::size_t count = remove_old_runs(folder_.root(), folder_.path(), keep).size();
    if (count == 0) return;
    report_.note(fmt::format("removed {} older run{} from {}; --keep all keeps them", count, count == 1 ? "" : "s",
                             folder_.shown().parent_path().string()));
  }

  // A text without findings shows no name; a document shows the stack of each fork.
  bool is_clean(std::optional<model::Model>& nameless) const {
    if (!nameless || history_.has_stuck() || options_.format == ReportFormat::kJson) return false;
    return merge_clean(*nameless, history_.log(supervisor_));
  }

  // A process that lost its parent with CMD is known by its trace alone.
  void follow_traces_to_the_end() {
    next_load_ = Clock::time_point{};
    supervisor_.tree().refresh();
    follow_traces();
  }

  const RunOptions& options_;
  RunReport& report_;
  RunFolder folder_;
  const RunSignals& signals_;
  watch::Supervisor supervisor_;
  RunHistory history_;
  OutsideFindings outside_;
  RunRights rights_;
  RunRest rest_;
  RunSaid said_;
  TraceNews news_;
  pid_t command_pid_;
  proc::ProcessKey command_;
  std::map<proc::ProcessKey, model::Liveness> reported_;
  std::optional<int> status_;  // CMD's, as of wait(2)
  int interrupts_ = 0;         // while something hung
  bool fails_ = false;         // something at or above --fail-on was found
  bool was_told_to_end_ = false;
  bool was_rest_told_ = false;
  bool given_up_ = false;
  int status_on_giving_up_ = 0;  // as of wait(2), as if that signal had ended CMD
  bool killing_ = false;
  bool has_unread_traces_ = false;
  std::size_t forks_ = 0;  // of the tree when orphans were looked for
  Clock::time_point next_search_{};
  Clock::time_point next_load_{};
};

}  // namespace

RunEnd run_session(const RunOptions& options) {
  const auto installed = find_shim();
  if (!installed) return {kRunFailed, installed.error()};
  const auto shim = make_preload_path(installed.value(), list_link_folders());
  if (!shim) return {kRunFailed, shim.error()};
  if (const auto foreign = proc::find_foreign_proc()) return {kRunFailed, *foreign};
  if (options.format == ReportFormat::kJson && options.report.empty()) {
    return {kRunRefused,
            "--format json: CMD writes to standard output and standard error: give the document a file by --report FILE, or "
            "standard output by --report -, which sends CMD's own to standard error"};
  }
  RunReport report(options);
  if (std::string problem = report.open(); !problem.empty()) return {kRunRefused, std::move(problem)};
  auto folder = RunFolder::make(options.out.empty() ? fs::path("forksight-out") : options.out);
  if (!folder && options.out.empty()) {
    folder = RunFolder::make_private();
    if (folder) report.note(fmt::format("no folder can be made here: traces go to {}", folder->shown().string()));
  }
  if (!folder) return {kRunRefused, folder.error()};

  const RunSignals signals;
  proc::Environment environment{
      {"LD_PRELOAD", preload_value(shim.value(), std::getenv("LD_PRELOAD"))},
      {"ASAN_OPTIONS", asan_options_value(std::getenv("ASAN_OPTIONS"))},
      {"FORKSIGHT_OUT", folder->path().string()},
      {"FORKSIGHT_OMP", options.omp},
      {"FORKSIGHT_ON_ORPHAN", options.on_orphan},
      {"FORKSIGHT_CURE", options.cure},
      {"FORKSIGHT_PYTHON_SIGNAL", python_signal_value()},
  };
  if (options.lock_order) environment.emplace_back("FORKSIGHT_LOCK_ORDER", "1");
  if (options.predict) environment.emplace_back("FORKSIGHT_PREDICT", "1");
  const proc::OutputPlace output{options.report == kStandardOutput ? STDERR_FILENO : -1};
  const proc::Launch command = proc::launch(options.command, environment, signals.before(), output);
  if (command.pid < 0) {
    folder->remove_if_empty();
    return {command.exit_code, command.message};
  }
  Session session(options, report, std::move(folder).value(), signals, command.pid);
  for (const std::string& limit : find_preload_limits(proc::resolve_program(options.command.front()))) {
    session.add_limit(limit);
  }
  if (const auto limit = find_asan_limit(std::getenv("ASAN_OPTIONS"))) session.add_limit(*limit);
  return {session.run(), {}};
}

}  // namespace forksight
