#include "session/session.hpp"

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <map>
#include <new>
#include <optional>
#include <set>

#include "collect/load.hpp"
#include "diagnose/diagnose.hpp"
#include "diagnose/evidence.hpp"
#include "files/budgets.hpp"
#include "guard/child.hpp"
#include "inspect/live_tree.hpp"
#include "proc/launch.hpp"
#include "proc/namespaces.hpp"
#include "proc/own_process.hpp"
#include "proc/proc_fs.hpp"
#include "session/exit.hpp"
#include "session/history.hpp"
#include "session/job.hpp"
#include "session/job_report.hpp"
#include "session/kill.hpp"
#include "session/lost_signals.hpp"
#include "session/no_evidence.hpp"
#include "session/open_calls.hpp"
#include "session/outside.hpp"
#include "session/preload.hpp"
#include "session/preload_link.hpp"
#include "session/python.hpp"
#include "session/readings.hpp"
#include "session/report.hpp"
#include "session/reported_findings.hpp"
#include "session/rest.hpp"
#include "session/rights.hpp"
#include "session/run_folder.hpp"
#include "session/signals.hpp"
#include "session/trace_growth.hpp"
#include "watch/supervisor.hpp"

namespace forksight {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPace{250};
// At most 1/kSearchShare of the time is spent on searches for processes that lost their parent.
constexpr int kSearchShare = 200;
constexpr int kLoadShare = 50;  // at most 1/kLoadShare of the time is spent on reading traces that grow
// After the end of CMD, processes that it leaves behind get this time to end by themselves.
constexpr std::chrono::milliseconds kLastMoment{500};

class Session {
 public:
  // `job`: the report of a run with a time limit; null for other runs. `strangers`: processes that are not part of the
  // run.
  Session(const RunOptions& options, RunReport& report, RunFolder folder, const RunSignals& signals, pid_t command,
          JobReport* job, Processes strangers)
      : options_(options),
        report_(report),
        job_(job),
        strangers_(std::move(strangers)),
        folder_(std::move(folder)),
        signals_(signals),
        supervisor_(command, options.hang_after),
        history_(options.command),
        rights_(folder_.path()),
        trace_growth_(folder_.path()),
        command_pid_(command) {
    const auto member = supervisor_.tree().living().find(command);
    if (member != supervisor_.tree().living().end()) {
      command_ = member->second.key;
      history_.note_command(member->second);
      supervisor_.set_started(command_);
    }
  }

  void add_limit(const std::string& sentence) { history_.add_limit(sentence); }

  // If forksight itself fails, a library may throw an exception. A job must not go on without its limit, so forksight
  // ends the job first.
  int run() {
    if (job_ == nullptr) return watch();
    try {
      return watch();
    } catch (...) {
      was_told_to_end_ = true;
      is_over_limit_ = true;
      end_job();
      throw;
    }
  }

 private:
  struct Diagnosis {
    model::Model model;
    std::vector<Finding> findings;
    std::vector<std::string> unexplained;
  };

  int watch() {
    Clock::time_point next_look = Clock::now() + kPace;
    while (!status_ && !given_up_) {
      if (const auto signal = signals_.wait(next_look)) {
        handle(*signal);
        continue;
      }
      look();
      // If a look took long, or the machine was suspended, the missed looks are left out.
      next_look = std::max(next_look + kPace, Clock::now() + kPace / 2);
    }
    return job_ != nullptr ? finish_job() : finish();
  }

  void look() {
    follow_traces();
    adopt_outside_tree();
    const auto now = Clock::now();
    supervisor_.poll(now);
    note(supervisor_.verdicts(), now);
    forget_reports_of_freed();
    rest_.follow(supervisor_, now);
    for (const std::string& sentence : rights_.look(supervisor_)) history_.add_limit(sentence);
    if (is_time_to_tell(now) && has_new_findings(now)) {
      // Processes that wait for the hung process are reported together with it, no matter how long they have waited.
      supervisor_.poll_at_any_age(now);
      note(supervisor_.verdicts(), now);
      if (has_new_findings(now)) report_stuck(supervisor_.verdicts());
    }
    if (killing_) kill_tree();
    if (job_ != nullptr && now >= limit()) end_at_limit();
  }

  Clock::time_point limit() const { return started_ + options_.job->timeout; }

  // True if hangs may be reported now. The hangs of a job are reported only shortly before its limit.
  bool is_time_to_tell(Clock::time_point now) const {
    return job_ == nullptr || now >= limit() - time_before_limit(options_.job->timeout);
  }

  // If forksight has ended a process, processes that waited for it may go on. Forgets that the hangs of processes that
  // went on were reported. So if such a process hangs later for another reason, the new hang is reported, too.
  void forget_reports_of_freed() {
    if (killed_.empty()) return;
    const auto is_freed = [&](const proc::ProcessKey& key) { return !supervisor_.verdicts().contains(key); };
    std::erase_if(examined_, [&](const auto& entry) { return is_freed(entry.first); });
    std::erase_if(told_, is_freed);
  }

  bool has_new_findings(Clock::time_point now) const {
    const Verdicts& verdicts = supervisor_.verdicts();
    return std::any_of(verdicts.begin(), verdicts.end(), [&](const auto& entry) {
      return now - entry.second.since >= options_.hang_after && !was_examined(entry.second);
    });
  }

  // True if report_stuck() has examined this hang. False if only some threads of the process were stuck at that time,
  // and the whole process is stuck now. Then the process is examined again.
  bool was_examined(const watch::Verdict& verdict) const {
    const auto known = examined_.find(verdict.key);
    if (known == examined_.end()) return false;
    return known->second != model::Liveness::kAwake || verdict.liveness == model::Liveness::kAwake;
  }

  void note(const Verdicts& verdicts, Clock::time_point now) {
    for (const proc::ProcessKey& key : history_.note(supervisor_, verdicts, now)) withdraw(key);
  }

  void withdraw(const proc::ProcessKey& key) {
    // The process may go on because forksight has ended what it waited for. Then the hang of the process was real.
    if (!killed_.empty()) return;
    examined_.erase(key);
    told_.erase(key);
    outside_.forget(key);
    if (const auto gone = reported_findings_.withdraw(key); !gone.empty()) report_.withdraw(key.pid, gone);
  }

  void report_stuck(const Verdicts& verdicts) {
    for (const auto& [key, verdict] : verdicts) examined_[key] = verdict.liveness;
    const auto quick = load(kWithoutNames);
    if (quick) request_python_stacks(quick.value(), verdicts, supervisor_);
    const std::optional<model::Model> seen = look_at_hang(verdicts, quick ? quick.value() : model::Model());
    if (seen) history_.note_look(*seen);
    write_log();
    const Diagnosis diagnosis = diagnose_folder(seen);
    reported_findings_.note(verdicts, diagnosis.model, diagnosis.findings);
    report_.say(diagnosis.model, diagnosis.findings, diagnosis.unexplained);
    const Processes named = find_named(verdicts, diagnosis.model, diagnosis.findings);
    told_.insert(named.begin(), named.end());
    if (job_ != nullptr) {
      job_->tell(diagnosis.model, diagnosis.findings, diagnosis.unexplained);
      if (!was_told_to_end_) kill_dead(find_proven_dead(verdicts, diagnosis.model, diagnosis.findings));
    }
    if (options_.on_hang == OnHang::kKill) decide_to_kill(verdicts, diagnosis);
  }

  void decide_to_kill(const Verdicts& verdicts, const Diagnosis& diagnosis) {
    const auto has_hang = [&](Certainty least) {
      return has_hang_to_end(verdicts, diagnosis.model, diagnosis.findings, least);
    };
    if (has_hang(options_.kill_on)) {
      killing_ = true;
    } else if (!killing_ && !was_spared_ && has_hang(Certainty::kLikely)) {
      was_spared_ = true;
      report_.note("CMD is not ended, because the hang is only likely; --kill-on likely would end it");
    }
  }

  // Examines the processes of the run as `forksight why` does, before any process is ended. If forksight stops a
  // thread, some system calls of the thread end. So forksight does not stop a process whose wait has a way out, because
  // the wait may be intended. A wait for something that the fork of the process broke is not intended. forksight stops
  // a process with such a wait.
  std::optional<model::Model> look_at_hang(const Verdicts& verdicts, const model::Model& traced) {
    std::set<std::int32_t> broken;
    for (const model::Touch& touch : traced.touches) {
      if (is_open_hazard(touch)) broken.insert(traced.processes[touch.process].pid);
    }
    const bool has_hang = std::ranges::any_of(
        verdicts, [&](const auto& entry) { return entry.second.ways_out.empty() || broken.contains(entry.first.pid); });
    if (!has_hang || status_) return std::nullopt;
    inspect::LiveTreeOptions options = options_of_look();
    options.may_stop_idle = [&](std::int32_t pid) { return broken.contains(pid); };
    return look_from_outside(options);
  }

  inspect::LiveTreeOptions options_of_look() const {
    inspect::LiveTreeOptions options;
    options.others = find_non_descendants();
    options.own_signals = supervisor_.own_signals();
    options.started = command_;
    return options;
  }

  // Session reads traces, programs and the memory of processes only through load(), load_nameless() and
  // look_from_outside().
  Result<model::Model> load(const collect::LoadOptions& options) {
    auto model = readings_.load(folder_.path(), options);
    say_failures();
    return model;
  }

  // Reads the traces without names. Returns nullopt if there are no readable traces.
  std::optional<model::Model> load_nameless() {
    if (!folder_.has_traces()) return std::nullopt;
    auto model = load(kWithoutNames);
    return model ? std::optional(std::move(model).value()) : std::nullopt;
  }

  std::optional<model::Model> look_from_outside(const inspect::LiveTreeOptions& options) {
    auto seen = readings_.look(command_pid_, options);
    say_failures();
    return seen;
  }

  void say_failures() {
    for (const std::string& sentence : readings_.take_failures()) {
      history_.add_limit(sentence);
      if (job_ != nullptr) {
        job_->say(sentence);
      } else {
        report_.warn(sentence);
      }
    }
  }

  // Reads the traces, if they have grown. Tells the supervisor what else to look at: processes that the supervisor's
  // search did not find, threads that may be spinning, calls that have not returned, and signals.
  void follow_traces() {
    if (trace_growth_.have_traces_grown()) has_unread_traces_ = true;
    const auto start = Clock::now();
    if (!has_unread_traces_ || start < next_load_) return;
    has_unread_traces_ = false;
    const auto model = load(kWithoutNames);
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

  // If a process forks and ends between two searches of the tree, its child has another parent, so a search of the tree
  // cannot find the child. The child may have no trace either. So this function finds processes of the run by their
  // environment.
  void adopt_outside_tree() {
    if (job_ != nullptr) adopt_children();
    const auto start = Clock::now();
    const std::size_t forks = supervisor_.tree().forks();
    if (forks == forks_ || start < next_search_) return;
    forks_ = forks;
    for (const std::int32_t pid : proc::list_numbers("/proc").numbers) {
      if (supervisor_.tree().living().contains(pid)) continue;
      const auto stat = proc::read_stat(pid);
      const bool is_younger = stat && stat->start_ticks >= command_.start_ticks && pid != ::getpid();
      if (is_younger && names_our_folder(pid)) supervisor_.tree().adopt({pid, stat->start_ticks});
    }
    next_search_ = Clock::now() + (Clock::now() - start) * kSearchShare;
  }

  // If the parent of a process of the job ends, the process becomes a child of forksight. Adds such children to the
  // run.
  void adopt_children() {
    for (const std::int32_t pid : proc::read_children(::getpid())) {
      if (supervisor_.tree().living().contains(pid)) continue;
      const auto stat = proc::read_stat(pid);
      if (!stat || strangers_.contains({pid, stat->start_ticks}) || proc::is_own_process(pid)) continue;
      supervisor_.tree().adopt({pid, stat->start_ticks});
    }
  }

  // True if the environment of the process names the folder of this run.
  bool names_our_folder(std::int32_t pid) const {
    // The text includes the end of the value, because the name of another run's folder may begin with the name of this
    // run's folder.
    const std::string mark = fmt::format("FORKSIGHT_OUT={}", folder_.path().string()) + '\0';
    return proc::read_environment(pid).find(mark) != std::string::npos;
  }

  // True if the process has mapped a trace of this run. Such a process may have written over its environment, to change
  // its name in the list of processes.
  bool maps_our_trace(std::int32_t pid) const {
    const std::string maps = proc::read_file(proc::proc_path(pid, "maps")).text;
    return maps.find(" " + folder_.path().string() + "/") != std::string::npos;
  }

  // Returns the processes of the run that do not descend from CMD any more.
  std::vector<proc::ProcessKey> find_non_descendants() const {
    std::set<std::int32_t> below;
    for (const proc::ProcessKey& key : supervisor_.tree().descendants()) below.insert(key.pid);
    std::vector<proc::ProcessKey> found;
    for (const auto& [pid, member] : supervisor_.tree().living()) {
      if (!below.contains(pid)) found.push_back(member.key);
    }
    return found;
  }

  void adopt(const model::Model& model) {
    for (const model::Process& process : model.processes) {
      if (process.pid <= 0 || supervisor_.tree().living().contains(process.pid)) continue;
      const auto stat = proc::read_stat(process.pid);
      if (!stat) continue;
      if (process.start_ticks != 0 && process.start_ticks != stat->start_ticks) continue;
      // The trace of a forked child does not contain the start time of the child. So the process itself must show that
      // it belongs to this run. If root runs forksight, this must hold for each process: a program of another user may
      // have written any pid into its trace, so that root examines or ends a process that is not part of the run.
      const bool is_shown = process.start_ticks != 0 && ::geteuid() != 0;
      if (!is_shown && !names_our_folder(process.pid) && !maps_our_trace(process.pid)) continue;
      supervisor_.tree().adopt({process.pid, stat->start_ticks});
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
      // Calls of MPI are not followed, because MPI spins whenever it waits for a message.
      const bool may_spin = !touch.returned && !touch.timed && !touch.cured &&
                            touch.action == model::TouchAction::kNone && touch.kind != model::TouchKind::kMpiCall;
      if (may_spin && touch.process < model.processes.size())
        open.push_back({model.processes[touch.process].pid, touch.tid});
    }
    supervisor_.set_touches(open);
  }

  void follow_calls(const model::Model& model) {
    std::vector<watch::StalledCall> calls = find_open_handlers(model);
    // When a handler returns, its record changes in place, and the trace does not grow. So while a handler runs, the
    // traces are read again even if they have not grown.
    has_unread_traces_ = has_unread_traces_ || !calls.empty();
    for (const watch::StalledCall& wait : find_timer_waits(model)) calls.push_back(wait);
    supervisor_.set_stalled(calls);
  }

  void write_log() {
    note_lack_of_room();
    const auto written = collect::write_run_log(folder_.path(), history_.log(supervisor_), folder_.fd());
    is_log_written_ = written && folder_.is_in_place();
    if (!written) note_once(written.error());
  }

  // A full disk lets each write of the run fail.
  void note_once(const std::string& problem) {
    if (noted_.insert(problem).second) report_.note(problem);
  }

  void note_lack_of_room() {
    if (!options_.preload) return;
    if (const std::string limit = folder_.find_lack_of_room(); !limit.empty()) history_.add_limit(limit);
  }

  Diagnosis diagnose_folder(const std::optional<model::Model>& seen) {
    Diagnosis result;
    auto model = load({});
    if (model) {
      result.model = std::move(model).value();
      if (!is_log_written_) collect::merge_run_log(result.model, history_.log(supervisor_));
    } else {
      collect::merge_run_log(result.model, history_.log(supervisor_));
      // If nothing could be written into the folder, write_log() has said so.
      if (!readings_.has_failed() && folder_.has_files()) result.model.limits.push_back(model.error());
    }
    std::vector<std::string> limits;
    result.findings = diagnose_within(files::kLongestRulesOfRun, result.model, limits).findings;
    if (seen) outside_.keep(*seen, result.model, result.findings);
    outside_.add_to(result.model, result.findings);
    if (const std::string problem = outside_.write(folder_.path(), folder_.fd()); !problem.empty())
      note_once(problem);
    result.unexplained = find_unexplained(result.model, result.findings);
    for (std::string& limit : limits) result.model.limits.push_back(std::move(limit));
    return result;
  }

  void handle(const signalfd_siginfo& info) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) {
      reap();
      return;
    }
    // A signal from the terminal or the kernel goes to the whole process group, so CMD gets it, too. A signal from
    // kill(1) reached only forksight, but was meant for CMD. So forksight passes the signal on to CMD.
    const bool by_process = info.ssi_code <= 0;
    const bool ends = signal == SIGINT || signal == SIGQUIT || signal == SIGTERM || signal == SIGHUP;
    was_told_to_end_ = was_told_to_end_ || ends;
    const bool hangs = ends && report_before_the_end();
    const bool is_interrupt = signal == SIGINT || signal == SIGQUIT;
    if (is_interrupt || (hangs && told_.empty())) report_rest(by_process);
    if (hangs && is_interrupt && ++interrupts_ > 1) {
      given_up_ = true;
      status_on_giving_up_ = signal;
      return;
    }
    if (by_process) send_signal(command_, signal);
  }

  // Reports the hangs before processes end. CMD may already be ending, so the latest verdict on an ending process still
  // counts. Returns true if something hangs.
  bool report_before_the_end() {
    Verdicts stuck = supervisor_.verdicts();
    supervisor_.poll_at_any_age(Clock::now());
    std::erase_if(stuck, [&](const auto& entry) {
      return !supervisor_.verdicts().contains(entry.first) && !proc::is_ending(entry.first);
    });
    for (const auto& [key, verdict] : supervisor_.verdicts()) stuck[key] = verdict;
    if (stuck.empty()) return false;
    note(stuck, Clock::now());
    const bool is_known = std::ranges::all_of(stuck, [&](const auto& entry) { return was_examined(entry.second); });
    if (!is_known) {
      report_stuck(stuck);
    } else if (std::ranges::any_of(stuck, [&](const auto& entry) { return told_.contains(entry.first); })) {
      report_.note("the run still hangs, as reported above");
    }
    return true;
  }

  // Reports what the processes wait for, except processes whose hang was reported. Does this once in a run, and only
  // while the run is at rest. `is_ours_alone`: no process of the run has received a signal, so the processes are
  // unchanged and can be examined.
  void report_rest(bool is_ours_alone) {
    if (was_rest_told_ || !rest_.is_at_rest()) return;
    std::optional<model::Model> seen;
    if (is_ours_alone && !proc::is_ending(command_)) seen = look_at_rest();
    const std::set<proc::ProcessKey> stuck = find_told();
    std::vector<model::ProcessId> resting = find_waiting_processes(rest_.waits(), stuck);
    const std::vector<model::ProcessId> now =
        seen ? find_waiting_processes(*seen, stuck) : std::vector<model::ProcessId>();
    // If `seen` has fewer waiting processes than the earlier look, some processes have ended or have gone on. Then the
    // result of the earlier look is reported.
    const bool is_whole = seen && now.size() >= resting.size();
    const model::Model& told = is_whole ? *seen : rest_.waits();
    if (is_whole) resting = now;
    if (resting.empty()) return;
    was_rest_told_ = true;
    if (job_ != nullptr) {
      job_->tell_waits(told, resting);
    } else {
      report_.say_waits(told, resting);
    }
  }

  // Returns the processes whose hang was reported, with or without a cause. Leaves out processes that go on although
  // some of their threads are stuck.
  std::set<proc::ProcessKey> find_told() const {
    std::set<proc::ProcessKey> told;
    for (const auto& [key, liveness] : examined_) {
      if (liveness != model::Liveness::kAwake && told_.contains(key)) told.insert(key);
    }
    return told;
  }

  // Examines the run as `forksight why --no-stop` does. The result has the places in the code where threads wait.
  std::optional<model::Model> look_at_rest() {
    inspect::LiveTreeOptions options = options_of_look();
    options.stop = false;
    options.of_idle = true;
    auto looked = look_from_outside(options);
    if (!looked) return std::nullopt;
    model::Model& seen = *looked;
    // The look may also contain processes that are not part of the run, but that have the other end of a pipe or
    // socket.
    for (model::Process& process : seen.processes) {
      if (!supervisor_.tree().living().contains(process.pid)) process.waits.clear();
    }
    return looked;
  }

  // Waits for all ended children, not only for CMD: if forksight is process 1 of a container, forksight also becomes
  // the parent of other programs' processes whose parent has ended.
  void reap() {
    for (;;) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid < 0 && errno == EINTR) continue;
      if (pid <= 0) return;
      if (pid != command_pid_) continue;
      status_ = status;
      if (history_.note_end(command_, status, !killing_ && !was_told_to_end_ && WIFEXITED(status))) withdraw(command_);
    }
  }

  // Ends the run at the limit of the job. `was_told_to_end_` and `given_up_` are set for two reasons: forksight must
  // not withdraw the findings about processes that it ends now, and must not report the effects of its own signals.
  void end_at_limit() {
    is_over_limit_ = true;
    was_told_to_end_ = true;
    given_up_ = true;
    report_before_the_end();
    if (job_->has_reported_hang()) {
      job_->say("the job was ended at the limit; the hangs are reported above");
      return;
    }
    const std::string sentence = "the job was ended at the limit; no process was proven to hang";
    job_->say_failure(job_->has_reported() ? sentence + "; the report above says what may be wrong" : sentence);
    report_rest(true);
    if (!was_rest_told_)
      job_->say("these processes had not ended at the limit: " + name_processes(list_job(strangers_)));
  }

  // Ends processes that can never go on. Then processes that wait for the ended processes may go on.
  void kill_dead(const std::vector<proc::ProcessKey>& dead) {
    if (dead.empty()) return;
    job_->say("these processes can never go on; forksight ends them: " + name_processes(dead));
    for (const proc::ProcessKey& key : dead) {
      history_.note_kill(key);
      killed_.insert(key);
      send_signal(key, SIGKILL);
    }
  }

  int finish_job() {
    const int run_status = finish();
    end_job();
    const int status = job_status({is_over_limit_, killed_.contains(command_), !killed_.empty(), run_status});
    job_->end(status, Clock::now() - started_);
    return status == 0 && job_->has_failed() ? kRunFailed : status;
  }

  // Ends all processes that CMD has left behind. Unless the job has reached its limit, first waits a moment, because
  // these processes may be about to end by themselves.
  void end_job() {
    const auto ask_at = Clock::now() + (is_over_limit_ ? std::chrono::milliseconds(0) : kLastMoment);
    const auto force_at = ask_at + options_.job->grace;
    const auto give_up_at = force_at + std::chrono::seconds(10);
    Processes asked;
    for (;;) {
      reap();
      const std::vector<proc::ProcessKey> job = list_job(strangers_);
      // The list may miss a process whose parent ends while the list is made. But if forksight has no child, there is
      // no process left.
      if (job.empty() && (!strangers_.empty() || guard::has_abandoned_child() || !has_children())) return;
      const auto now = Clock::now();
      if (now >= give_up_at) {
        if (!job.empty()) job_->say("these processes cannot be ended: " + name_processes(job));
        return;
      }
      if (now >= ask_at && asked.empty() && !job.empty() && !given_up_) {
        job_->say("CMD left these processes behind; forksight ends them: " + name_processes(job));
      }
      for (const proc::ProcessKey& key : job) {
        if (now >= force_at) {
          send_signal(key, SIGKILL);
        } else if (now >= ask_at && asked.insert(key).second) {
          send_signal(key, SIGTERM);
        }
      }
      static_cast<void>(signals_.wait(now + std::chrono::milliseconds(20)));
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
    auto nameless = load_nameless();
    const bool is_over = !history_.has_stuck() && supervisor_.tree().living().empty();
    if (is_over && nameless && has_no_evidence(*nameless)) folder_.remove_traces();
    const bool has_evidence = folder_.has_traces() || history_.has_stuck();
    if (has_evidence) {
      write_log();
      diagnosis = is_clean(nameless) ? Diagnosis{std::move(*nameless), {}, {}} : diagnose_folder(std::nullopt);
    } else {
      note_lack_of_room();
      collect::merge_run_log(diagnosis.model, history_.log(supervisor_));
    }
    if (status_ && !killing_) report_.note_end(*status_);
    if (killed_.empty()) {
      for (const auto& [pid, gone] : reported_findings_.withdraw_unproven(diagnosis.findings))
        report_.withdraw(pid, gone);
    }
    fails_ = reported_findings_.has_at_least(options_.fail_on, diagnosis.findings);
    const bool has_document = job_ != nullptr && job_->has_document();
    const bool is_worth_keeping = has_evidence || !diagnosis.findings.empty() || has_document;
    const bool keeps_folder = is_worth_keeping && folder_.has_files();  // on a full disk the folder is empty
    if (!keeps_folder) folder_.remove_if_empty();
    report_.say_at_end(diagnosis.model, diagnosis.findings, diagnosis.unexplained);
    if (job_ != nullptr) {
      job_->tell(diagnosis.model, diagnosis.findings, diagnosis.unexplained);
      // CMD has ended and did not wait for the processes that still hang.
      if (!was_told_to_end_) kill_dead(find_proven_dead(supervisor_.verdicts(), diagnosis.model, diagnosis.findings));
    }
    if (keeps_folder) remove_older_runs();
    // Short-lived processes are known only from their traces.
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

  // True if the report can be made although no names were looked up. A text report without findings shows no names. A
  // document always needs names, because it shows the stack of each fork.
  bool is_clean(std::optional<model::Model>& nameless) const {
    if (!nameless || history_.has_stuck() || options_.format == ReportFormat::kJson) return false;
    return merge_without_names(*nameless, history_.log(supervisor_));
  }

  // Reads the traces once more, because a process whose parent ended together with CMD is known only from its trace.
  void follow_traces_to_the_end() {
    next_load_ = Clock::time_point{};
    supervisor_.tree().refresh();
    follow_traces();
  }

  const RunOptions& options_;
  RunReport& report_;
  JobReport* job_;
  Processes strangers_;
  RunFolder folder_;
  const RunSignals& signals_;
  watch::Supervisor supervisor_;
  RunHistory history_;
  RunReadings readings_;
  OutsideFindings outside_;
  RunRights rights_;
  RunRest rest_;
  ReportedFindings reported_findings_;
  TraceGrowth trace_growth_;
  pid_t command_pid_;
  std::set<std::string> noted_;
  proc::ProcessKey command_;
  std::map<proc::ProcessKey, model::Liveness> examined_;  // each stuck process that report_stuck() has examined
  Processes told_;                                        // those of them that the report names
  Processes killed_;                                      // processes that kill_dead() has killed
  Clock::time_point started_ = Clock::now();
  bool is_over_limit_ = false;  // forksight ends the job, because the job reached its limit
  std::optional<int> status_;   // how CMD ended, as wait(2) reports it
  int interrupts_ = 0;          // how often Ctrl-C was pressed while something hung
  bool fails_ = false;          // a finding at or above --fail-on was made and not withdrawn
  bool was_told_to_end_ = false;
  bool was_rest_told_ = false;
  bool given_up_ = false;
  int status_on_giving_up_ = 0;  // the status of wait(2) that CMD would have if the second Ctrl-C had ended it
  bool killing_ = false;
  bool was_spared_ = false;      // a likely hang was found, and --kill-on did not allow to end CMD
  bool is_log_written_ = false;  // run.json has what is known
  bool has_unread_traces_ = false;
  std::size_t forks_ = 0;  // the value of tree().forks() at the latest adopt_outside_tree()
  Clock::time_point next_search_{};
  Clock::time_point next_load_{};
};

// Does the same as run_session(), but a library may throw an exception.
RunEnd run_or_throw(const RunOptions& options) {
  RunSignals signals;
  fs::path shim;
  if (options.preload) {
    const auto installed = find_shim();
    if (!installed) return {kRunFailed, installed.error()};
    const auto linked = make_preload_path(installed.value(), list_link_folders());
    if (!linked) return {kRunFailed, linked.error()};
    shim = linked.value();
  }
  if (const auto foreign = proc::find_foreign_proc()) return {kRunFailed, *foreign};
  if (options.format == ReportFormat::kJson && options.report.empty()) {
    return {kRunRefused,
            "--format json: CMD writes to standard output and standard error: write the document to a file with "
            "--report FILE, or to standard output with --report -, which sends the output of CMD to standard error"};
  }
  RunReport report(options);
  if (std::string problem = report.open(); !problem.empty()) return {kRunRefused, std::move(problem)};
  auto folder = RunFolder::make(options.out.empty() ? fs::path("forksight-out") : options.out);
  if (!folder && options.out.empty()) {
    folder = RunFolder::make_private();
    if (!folder) return {kRunFailed, folder.error()};
    report.note(fmt::format("no folder can be made here: traces go to {}", folder->shown().string()));
  }
  if (!folder) return {kRunRefused, folder.error()};

  std::optional<JobReport> job;
  Processes strangers;
  if (options.job) {
    job.emplace(options, folder->path() / kJobReportFile, folder->shown() / kJobReportFile);
    std::string problem = job->open();
    if (problem.empty()) problem = become_reaper();
    if (!problem.empty()) {
      folder->remove_if_empty();
      return {kRunRefused, std::move(problem)};
    }
    // A program may have made children and then called exec to start forksight. These children are not part of the job.
    const std::vector<proc::ProcessKey> before = list_job({});
    strangers = {before.begin(), before.end()};
  }
  signals.begin();
  proc::Environment environment{
      {"FORKSIGHT_OUT", folder->path().string()},         {"FORKSIGHT_OMP", options.omp},
      {"FORKSIGHT_ON_ORPHAN", options.on_orphan},         {"FORKSIGHT_CURE", options.cure},
      {"FORKSIGHT_PYTHON_SIGNAL", python_signal_value()},
  };
  const fs::path program = proc::resolve_program(options.command.front());
  const auto other_libc = options.preload ? find_other_libc(program) : std::nullopt;
  const bool has_shim = options.preload && !other_libc;
  if (has_shim) {
    environment.emplace_back("LD_PRELOAD", preload_value(shim, std::getenv("LD_PRELOAD")));
    environment.emplace_back("ASAN_OPTIONS", asan_options_value(std::getenv("ASAN_OPTIONS")));
  }
  if (options.lock_order) environment.emplace_back("FORKSIGHT_LOCK_ORDER", "1");
  if (options.predict) environment.emplace_back("FORKSIGHT_PREDICT", "1");
  const proc::OutputPlace output{options.report == kStandardOutput ? STDERR_FILENO : -1};
  const proc::Launch command = proc::launch(options.command, environment, signals.before(), output);
  if (command.pid < 0) {
    folder->remove_if_empty();
    if (job) job->fail(command.message);
    return {command.exit_code, command.message};
  }
  Session session(options, report, std::move(folder).value(), signals, command.pid, job ? &*job : nullptr,
                  std::move(strangers));
  if (other_libc) session.add_limit(*other_libc);
  if (!has_shim) return {session.run(), {}};
  for (const std::string& limit : find_preload_limits(program)) session.add_limit(limit);
  if (const auto limit = find_asan_limit(std::getenv("ASAN_OPTIONS"))) session.add_limit(*limit);
  return {session.run(), {}};
}

}  // namespace

RunEnd run_session(const RunOptions& options) {
  try {
    return run_or_throw(options);
  } catch (const std::bad_alloc&) {
    return {kRunFailed, "forksight has no more memory"};
  } catch (const std::exception& error) {
    return {kRunFailed, error.what()};
  }
}

}  // namespace forksight
