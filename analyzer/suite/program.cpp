#include "suite/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <ctime>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>
#include <thread>

#include "proc/launch.hpp"
#include "proc/proc_fs.hpp"
#include "suite/processes.hpp"

namespace forksight::suite {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr auto kLookEvery = 20ms;
constexpr auto kQuiet = 1s;  // if all threads sleep and none of them runs for this long, the program hangs
constexpr auto kIdle = 3s;   // it also hangs if for this long its threads only wake up and sleep again
// If a thread that does not sleep at this many looks in a row has hardly slept meanwhile, it waits for a processor, and
// nobody knows what it will do then. So the program is not idle.
constexpr int kMostAwakeLooks = 5;
// A thread that has gone to sleep by itself this often, and has used almost no CPU time, only wakes up and sleeps
// again. On a busy machine such a thread waits for a processor most of the time, so it is not seen asleep at most
// looks.
constexpr std::uint64_t kManySleeps = 20;
constexpr int kSpinS = 1;  // if one thread uses this much CPU time while all others are quiet, the program spins
// A loop that waits touches no new memory. A program that starts or imports a library touches new memory all the time.
constexpr std::uint64_t kMostWaitFaults = 64;
constexpr int kSysVfork = 58;

struct Task {
  char state = '?';
  std::uint64_t voluntary = 0;
  std::uint64_t nonvoluntary = 0;
  std::uint64_t ticks = 0;
  std::uint64_t faults = 0;
  friend bool operator==(const Task&, const Task&) = default;
};
using Tasks = std::map<std::pair<pid_t, pid_t>, Task>;

// True if the thread is in vfork(). Such a thread has the state D until its child execs or ends, and counts as asleep.
// A thread that has the state D in another call does not count as asleep.
bool is_in_vfork(pid_t pid, pid_t tid) {
  const auto call = proc::parse_syscall(proc::read_file(proc::task_path(pid, tid, "syscall")).text);
  return call && call->number == kSysVfork;
}

// Returns how many page faults of a thread needed no disk: field 10 of /proc/PID/task/TID/stat (proc(5)). 0: not known.
std::uint64_t read_faults(std::string_view stat) {
  constexpr int kFieldsBefore = 7;  // the fields between the name and this field
  std::size_t at = stat.rfind(')');
  for (int field = 0; field <= kFieldsBefore && at != std::string_view::npos; ++field) at = stat.find(' ', at + 1);
  std::uint64_t faults = 0;
  if (at != std::string_view::npos) std::from_chars(stat.data() + at + 1, stat.data() + stat.size(), faults);
  return faults;
}

// Returns the threads of `pids` that are not zombies.
Tasks look_at(const std::vector<pid_t>& pids) {
  Tasks tasks;
  for (const pid_t pid : pids) {
    for (const std::int32_t tid : proc::list_numbers(proc::proc_path(pid, "task")).numbers) {
      const std::string text = proc::read_file(proc::task_path(pid, tid, "stat")).text;
      const auto stat = proc::parse_stat(text);
      if (!stat || stat->state == 'Z') continue;
      const auto status = proc::parse_status(proc::read_file(proc::task_path(pid, tid, "status")).text);
      Task& task = tasks[{pid, tid}];
      task.state = stat->state == 'D' && is_in_vfork(pid, tid) ? 'S' : stat->state;
      task.voluntary = status ? status->voluntary : 0;
      task.nonvoluntary = status ? status->nonvoluntary : 0;
      task.ticks = stat->cpu_ticks;
      task.faults = read_faults(text);
    }
  }
  return tasks;
}

// True if the threads are the same, have used almost no CPU time together, and touched almost no new memory.
bool is_idle(const Tasks& before, const Tasks& now) {
  constexpr std::uint64_t kMostTicks = 6;
  std::uint64_t ticks = 0;
  std::uint64_t faults = 0;
  const bool same = std::ranges::equal(before, now, [&](const auto& one, const auto& other) {
    ticks += other.second.ticks - one.second.ticks;
    faults += other.second.faults - one.second.faults;
    return one.first == other.first;
  });
  return same && ticks <= kMostTicks && faults <= kMostWaitFaults;
}

// True if each thread sleeps, or has gone to sleep many times since `before`. Both lists have the same threads.
bool only_sleeps(const Tasks& before, const Tasks& now) {
  return std::ranges::all_of(now, [&](const auto& entry) {
    const Task& task = entry.second;
    return task.state == 'S' || (task.state == 'R' && task.voluntary - before.at(entry.first).voluntary >= kManySleeps);
  });
}

// Runs in the forked child: sets up its session, files and signals, and executes the program.
[[noreturn]] void become(const std::vector<char*>& arguments, int in, int out, int err) {
  ::setsid();
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::syscall(SYS_close_range, 3U, ~0U, 0U);  // a case must not inherit descriptors of this process
  for (const int number : {SIGINT, SIGTERM, SIGPIPE, SIGCHLD, SIGQUIT}) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvp(arguments.front(), arguments.data());
  ::_exit(proc::kNotFound);
}

std::string read_all(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

}  // namespace

fs::path find_in_path(const std::string& name) {
  const fs::path found = proc::resolve_program(name);
  return !found.empty() && ::access(found.c_str(), X_OK) == 0 ? found : fs::path();
}

void pause_for(Clock::duration time) {
  if (is_stopped()) time = std::min<Clock::duration>(time, kLookEvery);
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  timespec wanted = {static_cast<time_t>(nanoseconds / 1'000'000'000), static_cast<long>(nanoseconds % 1'000'000'000)};
  ::nanosleep(&wanted, nullptr);  // a signal ends the sleep early
}

Program::Program(const std::vector<std::string>& command, const fs::path& folder, const std::string& name)
    : stdout_path_(folder / (name + ".stdout")), stderr_path_(folder / (name + ".stderr")) {
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int out = ::open(stdout_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  const int err = ::open(stderr_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  pid_ = ::fork();
  if (pid_ == 0) become(arguments, in, out, err);
  if (pid_ < 0) status_ = proc::kNotExecutable;
  for (const int fd : {in, out, err}) ::close(fd);
}

std::string Program::read_stdout() const { return read_all(stdout_path_); }
std::string Program::read_stderr() const { return read_all(stderr_path_); }

void Program::note_end(int wait_status) {
  status_ = WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

std::optional<int> Program::status() {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) note_end(status);
  return status_;
}

std::string Program::watch(Clock::duration limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  const auto spin_ticks = static_cast<std::uint64_t>(kSpinS * ::sysconf(_SC_CLK_TCK));
  Tasks before;
  Tasks first;
  Tasks idle;           // the threads as they were at the last look at which they had used CPU time
  int awake_looks = 0;  // successive looks at which a thread was awake that has not gone to sleep many times
  Clock::time_point since = Clock::now();
  Clock::time_point idle_since = since;
  while (Clock::now() < deadline && !is_stopped()) {
    if (const auto ended = status()) return *ended == 0 ? "ok" : "error";
    const Tasks tasks = look_at(find_descendants());
    Tasks asleep = tasks;
    std::erase_if(asleep, [](const auto& entry) { return entry.second.state != 'S'; });
    // A new thread that does not sleep leaves `asleep` unchanged, but `first` lacks this thread. So the lists of
    // threads are compared, too.
    const bool same_tasks = std::ranges::equal(
        tasks, first, {}, [](const auto& entry) { return entry.first; }, [](const auto& entry) { return entry.first; });
    if (asleep != before || !same_tasks) {
      before = asleep;
      since = Clock::now();
      first = tasks;
    }
    const bool sleeps = !tasks.empty() && asleep.size() == tasks.size();
    const bool was_idle = is_idle(idle, tasks);
    const bool rests = !tasks.empty() && was_idle && only_sleeps(idle, tasks);
    awake_looks = sleeps || rests ? 0 : awake_looks + 1;
    if (!was_idle) idle = tasks;
    if (!was_idle || awake_looks >= kMostAwakeLooks) {
      idle_since = Clock::now();
      awake_looks = 0;
    }
    if (sleeps && Clock::now() - since >= kQuiet) return "hang";
    if (rests && Clock::now() - idle_since >= kIdle) return "hang";
    for (const auto& [key, task] : tasks) {
      const auto start = first.find(key);
      if (task.state == 'S' || start == first.end()) continue;
      if (task.faults - start->second.faults > kMostWaitFaults) start->second = task;
      if (task.ticks - start->second.ticks >= spin_ticks) return "spin";
    }
    pause_for(kLookEvery);
  }
  return "undecided";
}

std::optional<int> Program::wait(Clock::duration limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  const int descriptor = pid_ > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)) : -1;
  while (!status() && Clock::now() < deadline && !is_stopped()) {
    if (descriptor < 0) {  // an old kernel has no pidfd_open()
      pause_for(kLookEvery);
      continue;
    }
    pollfd ended = {descriptor, POLLIN, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    ::poll(&ended, 1, static_cast<int>(std::clamp<long>(left, 0, 1000)));  // at most a second at a time
  }
  if (descriptor >= 0) ::close(descriptor);
  return status_;
}

void Program::kill() {
  if (status()) return;
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  note_end(status);
}

void Program::terminate() {
  if (!status()) ::kill(pid_, SIGTERM);
}

bool Program::end_all() {
  status();
  return end_descendants([this](pid_t pid, int wait_status) {
    if (pid == pid_ && !status_) note_end(wait_status);
  });
}

Captured capture(const std::vector<std::string>& command, const fs::path& folder, const std::string& name,
                 Clock::duration limit) {
  Program program(command, folder, name);
  Captured captured;
  captured.status = program.wait(limit);
  if (!captured.status) program.kill();
  captured.out = program.read_stdout();
  captured.err = program.read_stderr();
  return captured;
}

}  // namespace forksight::suite
