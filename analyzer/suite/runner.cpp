#include "suite/runner.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>

#include "proc/proc_fs.hpp"
#include "suite/processes.hpp"
#include "suite/program.hpp"
#include "suite/worker.hpp"

namespace forksight::suite {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr auto kTick = 200ms;
constexpr auto kGrace = 15s;  // the time between SIGTERM and SIGKILL

volatile std::sig_atomic_t g_is_interrupted = 0;
void note_interrupt(int) { g_is_interrupted = 1; }

// SIGINT, SIGTERM and SIGHUP end the run. These signals are blocked except inside of ppoll(), so that no signal is
// missed.
class Signals {
 public:
  Signals() {
    g_is_interrupted = 0;
    struct sigaction action = {};
    action.sa_handler = note_interrupt;
    sigset_t blocked;
    ::sigemptyset(&blocked);
    for (std::size_t index = 0; index < kEnding.size(); ++index) {
      ::sigaddset(&blocked, kEnding[index]);
      ::sigaction(kEnding[index], &action, &before_[index]);
    }
    ::sigprocmask(SIG_BLOCK, &blocked, &mask_);
  }
  ~Signals() {
    for (std::size_t index = 0; index < kEnding.size(); ++index) ::sigaction(kEnding[index], &before_[index], nullptr);
    ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  const sigset_t& outer_mask() const { return mask_; }

 private:
  static constexpr std::array<int, 3> kEnding = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> before_ = {};
  sigset_t mask_ = {};
};

// Estimates how long a case takes, without a unit. A hang takes long, and each further run takes additional time.
double weight_of(const Entry& entry) {
  const bool hangs = entry.expected.bare == "hang" || entry.expected.bare == "spin";
  return 1.0 + (hangs ? 6.0 : 0.0) + (entry.expected.core ? 2.0 : 0.0) +
         static_cast<double>(entry.expected.runs.size()) + (entry.which->interpreter.empty() ? 0.0 : 2.0);
}

struct Worker {
  std::size_t index = 0;  // the index of the entry that the worker runs
  pid_t pid = -1;
  int pipe = -1;
  std::string text;
  Clock::time_point started;
  std::optional<Clock::time_point> told_to_stop;
  bool is_late = false;
};

void write_all(int descriptor, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t put = ::write(descriptor, text.data() + done, text.size() - done);
    if (put < 0 && errno != EINTR) return;
    if (put > 0) done += static_cast<std::size_t>(put);
  }
}

// Returns the descendants of this process that do not belong to a living worker.
std::vector<pid_t> find_leftover_processes(const std::vector<Worker>& workers) {
  std::vector<pid_t> leftover;
  for (const pid_t pid : find_descendants()) {
    pid_t top = pid;
    const auto is_worker = [&](pid_t one) {
      return std::ranges::any_of(workers, [&](const Worker& worker) { return worker.pid == one; });
    };
    while (!is_worker(top)) {
      const auto stat = proc::read_stat(top);
      if (!stat || stat->ppid == ::getpid()) break;
      top = stat->ppid;
    }
    if (!is_worker(top)) leftover.push_back(pid);
  }
  return leftover;
}

class Runner {
 public:
  Runner(const std::vector<Entry>& entries, const RunnerOptions& options, const RunnerEvents& events, fs::path folder)
      : entries_(entries), options_(options), events_(events), folder_(std::move(folder)), order_(entries.size()) {
    run_.results.resize(entries.size());
    for (std::size_t index = 0; index < entries.size(); ++index) {
      run_.results[index].which = entries[index].which;
      run_.results[index].expected = entries[index].expected;
      total_weight_ += weight_of(entries[index]);
    }
    // The longest cases start first, so that no long case runs alone at the end.
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::stable_sort(order_, std::greater<>(), [&](std::size_t index) { return weight_of(entries_[index]); });
  }

  RunnerResult run() {
    const Clock::time_point start = Clock::now();
    started_ = start;
    while (!workers_.empty() || (next_ < order_.size() && !run_.is_stopped)) {
      if (g_is_interrupted != 0) run_.is_stopped = true;
      while (!run_.is_stopped && next_ < order_.size() && workers_.size() < static_cast<std::size_t>(options_.jobs)) {
        start_worker(order_[next_++]);
      }
      stop_what_is_late();
      wait_for_workers();
      if (events_.tick) events_.tick(look());
    }
    run_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return std::move(run_);
  }

 private:
  void start_worker(std::size_t index) {
    int ends[2];
    const std::string& name = entries_[index].which->name;
    const fs::path folder = folder_ / name;
    std::error_code error;
    fs::create_directories(folder, error);
    if (error || ::pipe2(ends, O_CLOEXEC) != 0) {
      run_.results[index].lines.push_back(
          fmt::format("{}: this folder, or a pipe for the case, cannot be made", folder.string()));
      return finish(index, State::kRed);
    }
    Worker worker;
    worker.index = index;
    worker.started = Clock::now();
    worker.pipe = ends[0];
    const pid_t parent = ::getpid();
    worker.pid = ::fork();
    if (worker.pid == 0) be_worker(entries_[index], folder, ends[1], parent);
    ::close(ends[1]);
    if (worker.pid < 0) {
      ::close(ends[0]);
      run_.results[index].lines.push_back(
          fmt::format("no process can be made for this case: {}", std::strerror(errno)));
      return finish(index, State::kRed);
    }
    ::fcntl(worker.pipe, F_SETFL, O_NONBLOCK);
    workers_.push_back(std::move(worker));
  }

  [[noreturn]] void be_worker(const Entry& entry, const fs::path& folder, int pipe, pid_t parent) {
    end_waits_at_sigterm();
    ::signal(SIGINT, SIG_IGN);
    ::signal(SIGHUP, SIG_IGN);
    ::sigprocmask(SIG_SETMASK, &signals_.outer_mask(), nullptr);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);
    try {
      JudgeOptions options = options_.judge;
      options.folder = folder;
      const std::string result = work(entry, options);
      std::error_code error;
      if (options_.keep.empty()) fs::remove_all(folder, error);
      write_all(pipe, result);
    } catch (...) {
      end_descendants([](pid_t, int) {});
      ::_exit(1);  // there is no result, and the parent reports this
    }
    ::_exit(0);
  }

  void stop_what_is_late() {
    const Clock::time_point now = Clock::now();
    for (Worker& worker : workers_) {
      const bool is_late = now - worker.started >= options_.case_limit;
      if (!worker.told_to_stop && (is_late || run_.is_stopped)) {
        worker.told_to_stop = now;
        worker.is_late = is_late;
        ::kill(worker.pid, SIGTERM);
      }
      if (worker.told_to_stop && now - *worker.told_to_stop >= kGrace) ::kill(worker.pid, SIGKILL);
    }
  }

  void wait_for_workers() {
    std::vector<pollfd> polled;
    for (const Worker& worker : workers_) polled.push_back({worker.pipe, POLLIN, 0});
    const timespec tick = {0, std::chrono::nanoseconds(kTick).count()};
    if (::ppoll(polled.data(), polled.size(), &tick, &signals_.outer_mask()) <= 0) return;
    for (std::size_t place = polled.size(); place-- > 0;) {
      if (polled[place].revents != 0 && !read_some(workers_[place])) end_worker(place);
    }
  }

  // Returns false when the worker has written its whole result.
  static bool read_some(Worker& worker) {
    std::array<char, 65536> buffer;
    const ssize_t got = ::read(worker.pipe, buffer.data(), buffer.size());
    if (got > 0) worker.text.append(buffer.data(), static_cast<std::size_t>(got));
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
  }

  void end_worker(std::size_t place) {
    const Worker worker = std::move(workers_[place]);
    workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(place));
    ::close(worker.pipe);
    int status = 0;
    while (::waitpid(worker.pid, &status, 0) < 0 && errno == EINTR) {
    }
    CaseResult& result = run_.results[worker.index];
    result.seconds = std::chrono::duration<double>(Clock::now() - worker.started).count();
    if (!read_result(worker.text, result)) {
      end_leftover_processes();
      result.state = State::kRed;
      result.lines.push_back(
          fmt::format("the process that judges it ended with wait status {:#x} and without a result", status));
    }
    if (worker.is_late) {
      result.state = State::kRed;
      result.lines.push_back(fmt::format("did not end within {} s in all", options_.case_limit.count()));
    }
    finish(worker.index, result.state);
  }

  void end_leftover_processes() {
    const Clock::time_point give_up = Clock::now() + kGrace;
    for (auto leftover = find_leftover_processes(workers_); !leftover.empty() && Clock::now() < give_up;
         leftover = find_leftover_processes(workers_)) {
      for (const pid_t pid : leftover) {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, WNOHANG);  // no effect if the process still runs, or has another parent
      }
      pause_for(10ms);
    }
  }

  void finish(std::size_t index, State state) {
    CaseResult& result = run_.results[index];
    result.state = state;
    ++done_;
    weight_done_ += weight_of(entries_[index]);
    if (state == State::kRed) ++red_;
    if (events_.finished) events_.finished(result, look());
  }

  Snapshot look() const {
    Snapshot snapshot{done_, entries_.size(), red_, {}, -1.0};
    double half_done = 0;
    for (const Worker& worker : workers_) {
      snapshot.running.push_back(entries_[worker.index].which->name);
      half_done += weight_of(entries_[worker.index]) / 2;
    }
    const double done = weight_done_ + half_done;
    const double elapsed = std::chrono::duration<double>(Clock::now() - started_).count();
    if (weight_done_ > 0) snapshot.eta_s = elapsed * (total_weight_ - done) / done;
    return snapshot;
  }

  const std::vector<Entry>& entries_;
  const RunnerOptions& options_;
  const RunnerEvents& events_;
  fs::path folder_;
  std::vector<std::size_t> order_;
  std::size_t next_ = 0;
  std::vector<Worker> workers_;
  Signals signals_;
  RunnerResult run_;
  Clock::time_point started_;
  std::size_t done_ = 0;
  int red_ = 0;
  double total_weight_ = 0;  // the weight of all cases, including those that are done
  double weight_done_ = 0;
};

Result<fs::path> make_folder(const fs::path& keep) {
  std::error_code error;
  if (!keep.empty()) {
    fs::create_directories(keep, error);
    if (error) return Error{fmt::format("{}: {}", keep.string(), error.message())};
    return fs::absolute(keep);
  }
  const fs::path base = fs::temp_directory_path(error);
  std::string place = ((error ? fs::path("/tmp") : base) / "forksight-suite-XXXXXX").string();
  if (::mkdtemp(place.data()) == nullptr) return Error{fmt::format("{}: {}", place, std::strerror(errno))};
  return fs::path(place);
}

}  // namespace

int count_cores() {
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return std::max(1, CPU_COUNT(&cores));
}

Result<RunnerResult> run_cases(const std::vector<Entry>& entries, const RunnerOptions& options,
                               const RunnerEvents& events) {
  auto folder = make_folder(options.keep);
  if (!folder) return Error{folder.error()};
  become_reaper();
  RunnerResult run = Runner(entries, options, events, folder.value()).run();
  end_descendants([](pid_t, int) {});
  std::error_code error;
  if (options.keep.empty()) fs::remove_all(folder.value(), error);
  return run;
}

}  // namespace forksight::suite
