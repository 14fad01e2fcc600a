#include "guard/child.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "files/budgets.hpp"
#include "files/costly_files.hpp"
#include "files/dead_places.hpp"
#include "files/error_output.hpp"
#include "files/opener.hpp"
#include "guard/find_libc.hpp"
#include "guard/opener.hpp"
#include "proc/blocked_call.hpp"
#include "proc/mappings.hpp"
#include "proc/own_process.hpp"
#include "proc/proc_fs.hpp"
#include "proc/proc_text.hpp"
#include "proc/reader_rights.hpp"
#include "symbols/debug_files.hpp"

namespace forksight::guard {

class ReaderMaker {
 public:
  // Calls `work` with a Reader. Meanwhile, this process itself parses the libc files of other processes.
  static int call(const Work& work) {
    proc::set_libc_parser({});
    return work(files::Reader());
  }
};

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kPace = 200ms;
// How long calls for files block the child until this process asks for their places. The path of a call is in the
// memory of the child, and most children never make this process read it.
constexpr auto kUnplaced = 500ms;
// How long this process waits for the end of a child after SIGKILL. On a busy machine, the child may get a processor
// late. A child that a file system blocks does not end at all.
constexpr std::chrono::milliseconds kPatience{2000};
constexpr std::chrono::milliseconds kShortPatience{100};
// How long a child or an opener may be stopped in all, until this process gives up.
constexpr auto kLongestStop = 5s;
// The exit status of a child whose work has thrown an exception. A command that could not read its evidence has the
// same status.
constexpr int kFailed = 3;

bool g_has_abandoned = false;
// True if the parent starts another child when the work on one file ends the present child.
bool g_may_try_again = false;

struct Pipe {
  int read = -1;
  int write = -1;
};

// The caller may have closed standard input, output or error. The child opens other files at the numbers 0 to 2, so a
// descriptor for the child must have a higher number. If `fd` has such a low number, closes it and returns a copy with
// a higher number. Returns -1 if there is no descriptor.
int move_up(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ::close(fd);
  return copy;
}

// Calls move_up() for both ends. If move_up() fails for one end, closes both ends.
bool move_up(int (&ends)[2]) {
  for (int& end : ends) end = move_up(end);
  if (ends[0] >= 0 && ends[1] >= 0) return true;
  const int error = errno;
  for (const int end : ends) ::close(end);
  errno = error;
  return false;
}

// The descriptors are -1 if no pipe could be made.
Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0 || !move_up(ends)) return {};
  // A process that the child started may keep the pipe open. So this process never waits in read().
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Pipe{ends[0], ends[1]};
}

void close_pipe(const Pipe& pipe) {
  if (pipe.read < 0) return;
  ::close(pipe.read);
  ::close(pipe.write);
}

void say(const char* what) { files::write_error(fmt::format("forksight: error: {}\n", what)); }

// Limits the memory of this process to kMaxReaderBytes more than the process has now. The limit is relative, because
// with a sanitizer the process has terabytes from its start.
void limit_memory() {
  constexpr std::uint64_t kKilo = 1024;
  const std::string status = proc::read_file("/proc/self/status").text;
  const std::string_view field = proc::find_field(status, "VmData").value_or("");
  const auto used = proc::parse_decimal(field.substr(0, field.find(' ')));
  struct rlimit now {};
  if (!used || *used < 0 || ::getrlimit(RLIMIT_DATA, &now) != 0) return;
  const rlim_t most = static_cast<rlim_t>(*used) * kKilo + files::kMaxReaderBytes;
  now.rlim_cur = std::min(now.rlim_cur, most);
  now.rlim_max = std::min(now.rlim_max, most);
  ::setrlimit(RLIMIT_DATA, &now);
}

// A thread gets a stack of the size of the stack limit (`ulimit -s`). If the stack limit is some gigabytes, the stacks
// would not fit into the memory that limit_memory() allows.
void limit_stacks_of_threads() {
  constexpr std::size_t kStackBytes = std::size_t{8} << 20U;
  pthread_attr_t attributes;
  std::size_t size = 0;
  if (::pthread_getattr_default_np(&attributes) != 0) return;
  const bool is_large = ::pthread_attr_getstacksize(&attributes, &size) == 0 && size > kStackBytes;
  if (is_large && ::pthread_attr_setstacksize(&attributes, kStackBytes) == 0) ::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
}

// Raises the limit of descriptors as far as this process may raise it. The opener keeps each folder of a path open.
// libdw keeps each program and library open, and a process may have mapped more programs and libraries than the usual
// limit of 1024.
void raise_descriptor_limit() {
  struct rlimit now {};
  if (::getrlimit(RLIMIT_NOFILE, &now) != 0 || now.rlim_cur == now.rlim_max) return;
  now.rlim_cur = now.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &now);
}

// True in a child whose work on a file has failed, if another child will leave out that file.
bool fails_in_file() { return g_may_try_again && !files::current_work().path.empty(); }

// A library that finds no more memory may call exit(1): libdw does. Without this function, the caller of the command
// would take status 1 for "something found".
void fail_at_exit() {
  if (fails_in_file()) ::_exit(kFailed);
  say("a library has ended the process that reads files and memory for forksight; libdw does so if there is no more "
      "memory");
  std::fflush(stderr);
  ::_exit(kFailed);
}

constexpr int kSocket = STDERR_FILENO + 1;  // the descriptor of the socket to the opener, in the child

// Closes the caller's files, because a process that is blocked for ever would keep them open for ever. `socket`: a
// descriptor that becomes kSocket; -1: none.
void keep_only(int out, int error, int socket) {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(out >= 0 ? out : nothing, STDOUT_FILENO);
  ::dup2(error >= 0 ? error : nothing, STDERR_FILENO);
  if (socket >= 0 && socket != kSocket) ::dup2(socket, kSocket);
  ::syscall(SYS_close_range, socket >= 0 ? kSocket + 1 : kSocket, ~0U, 0);
}

void end_with(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kFailed);
}

// The process that opens files for a child that has given up its user.
struct Opener {
  pid_t pid = 0;    // 0: there is no opener, and the child keeps its user
  int socket = -1;  // the child's end of the socket
};

// Starts the process that opens files, if the child is to give up its user. nullopt: no process could be made.
std::optional<Opener> start_opener(bool examines_processes) {
  // libdebuginfod writes to the caller's cache, so a child that asks a server keeps its user.
  if (!proc::may_give_up_user() || symbols::may_ask_servers()) return Opener{};
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0 || !move_up(ends)) return std::nullopt;
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    end_with(parent);
    keep_only(-1, -1, ends[1]);
    // The terminal sends these signals to the opener and to the child. The opener ignores the signals, because the
    // opener must not end before the child.
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(signal, SIG_IGN);
    (void)proc::give_up_changing({});
    raise_descriptor_limit();
    serve_requests(kSocket, examines_processes);
  }
  const int error = errno;
  ::close(ends[1]);
  if (pid > 0) return Opener{pid, ends[0]};
  ::close(ends[0]);
  errno = error;
  return std::nullopt;
}

[[noreturn]] void be_child(pid_t parent, const Pipe& out, const Pipe& error, const Opener& opener,
                           const Options& options, const Work& work) {
  proc::set_guard(parent);
  proc::note_caller(::geteuid());
  keep_only(out.write, error.write, opener.socket);
  if (opener.pid != 0) {
    proc::note_own_process(opener.pid);
    if (proc::give_up_user(options.examines_processes)) files::use_opener(kSocket);
  }
  end_with(parent);  // the kernel forgets PR_SET_PDEATHSIG when a process changes its user
  (void)proc::give_up_changing({.is_server_asked = symbols::may_ask_servers()});
  std::atexit(fail_at_exit);
  files::announce_work();
  limit_memory();
  limit_stacks_of_threads();
  raise_descriptor_limit();
  int status = kFailed;
  try {
    status = ReaderMaker::call(work);
  } catch (const std::bad_alloc&) {
    if (fails_in_file()) ::_exit(kFailed);
    say("the process that reads files and memory for forksight has no more memory");
  } catch (const std::exception& failure) {
    if (fails_in_file()) ::_exit(kFailed);
    say(failure.what());
  } catch (...) {
    say("an unknown failure inside of a library");
  }
  std::fflush(stdout);
  std::fflush(stderr);
  ::_exit(status);
}

// Appends to `text` what can be read from `fd` now. Returns false if nothing can be read, or if the other end is
// closed.
bool drain(int fd, std::string& text) {
  constexpr std::size_t kPiece = 64U << 10U;  // as much as a pipe can hold
  const std::size_t before = text.size();
  text.resize(before + kPiece);
  const ssize_t got = ::read(fd, text.data() + before, kPiece);
  text.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
  return got > 0 || (got < 0 && errno == EINTR);
}

class Watcher {
 public:
  Watcher(pid_t child, const Opener& opener, const Options& options)
      : child_(child), opener_(opener.pid), options_(options) {}

  struct End {
    std::optional<int> status;                  // as wait(2) returns it; nullopt: the child has not ended
    std::vector<files::DeadPlace> dead_places;  // the places at which calls for files block the child
    std::string costly_file;                    // the file on which the child worked for too long, or failed
    Failure failure = Failure::kNone;
    std::string out;
    bool is_output_refused = false;
  };

  End watch(int out, int error) {
    End end;
    std::array<pollfd, 2> polled{{{out, POLLIN, 0}, {error, POLLIN, 0}}};
    Clock::time_point next_look = Clock::now() + kPace;
    for (;;) {
      const bool is_ending = polled[0].fd < 0 && polled[1].fd < 0;
      const std::chrono::milliseconds pause = is_ending ? 1ms : kPace;
      if (::poll(polled.data(), polled.size(), static_cast<int>(pause.count())) > 0) {
        if (polled[0].revents != 0 && !take_output(out, end)) polled[0].fd = -1;
        if (polled[1].revents != 0 && !pass_on(error)) polled[1].fd = -1;
      }
      int status = 0;
      if (::waitpid(child_, &status, WNOHANG) == child_) {
        while (polled[0].fd >= 0 && take_output(out, end)) {
        }
        while (polled[1].fd >= 0 && pass_on(error)) {
        }
        end.status = status;
        if (has_failed(status)) end.costly_file = files::current_work().path;
        return end;
      }
      const Clock::time_point now = Clock::now();
      if (!send_signal(now)) end.failure = Failure::kUnending;
      if (options_.limit && now - began_ > *options_.limit) end.failure = Failure::kLate;
      if (end.failure != Failure::kNone) return end;
      if (now < next_look) continue;
      next_look = now + kPace;
      if (!keep_going(now)) {
        end.failure = Failure::kStopped;
        return end;
      }
      end.dead_places = look();
      if (g_may_try_again) end.costly_file = files::find_costly_file(child_);
      if (!end.dead_places.empty() || !end.costly_file.empty()) return end;
    }
  }

 private:
  // True if the work on a file may be the reason why the child has ended.
  bool has_failed(int status) const {
    if (killed_at_) return false;
    if (WIFEXITED(status)) return WEXITSTATUS(status) == kFailed;
    constexpr std::array kFaults = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGKILL};
    return WIFSIGNALED(status) && std::ranges::find(kFaults, WTERMSIG(status)) != kFaults.end();
  }

  bool take_output(int fd, End& end) {
    const bool is_open = drain(fd, end.out);
    if (!options_.on_output && end.out.size() > options_.most_output) {
      end.failure = Failure::kTooMuch;
      end.out.clear();
      return false;
    }
    if (!options_.on_output || end.out.empty()) return is_open;
    const bool is_taken = !end.is_output_refused && options_.on_output(std::exchange(end.out, {}));
    if (is_taken) return is_open;
    end.is_output_refused = true;
    end.out.clear();
    ::kill(child_, SIGKILL);
    return false;
  }

  static bool pass_on(int fd) {
    std::string text;
    const bool is_open = drain(fd, text);
    files::write_error(text);
    return is_open;
  }

  // Sends the child the signal that next_signal() returns now. Returns false if the child still lives some time after
  // SIGKILL.
  bool send_signal(Clock::time_point now) {
    if (killed_at_) return now - *killed_at_ < kPace;
    const int signal = options_.next_signal ? options_.next_signal() : 0;
    if (signal != 0) ::kill(child_, signal);
    if (signal == SIGKILL) killed_at_ = now;
    return true;
  }

  // Continues the child and the opener if a signal has stopped them, for example SIGSTOP from another process of the
  // same user. Otherwise this process would wait for them until its time limit, or for ever. Returns false if they were
  // stopped for too long in all. One look does not count: Ctrl-Z stops this process, too, and `fg` continues all of
  // them, but this process may run first.
  bool keep_going(Clock::time_point now) {
    // Between two looks, this process itself may have been stopped.
    const Clock::duration since_look = std::min<Clock::duration>(now - looked_at_, 2 * kPace);
    bool is_any_stopped = false;
    for (const pid_t pid : {child_, opener_}) {
      const auto stat = pid == 0 ? std::nullopt : proc::read_stat(pid);
      if (!stat || stat->state != 'T') continue;
      is_any_stopped = true;
      if (was_stopped_) ::kill(pid, SIGCONT);
    }
    if (is_any_stopped && was_stopped_) stopped_for_ += since_look;
    was_stopped_ = is_any_stopped;
    return stopped_for_ < kLongestStop;
  }

  // Counts `since_look` for the places of a call. Adds to `found` the places whose calls have taken too long.
  // `counted`: the folders and devices of the places that this look has counted already.
  void add_slow_places(const proc::BlockedCall& call, pid_t pid, pid_t tid, Clock::duration since_look,
                       std::set<std::pair<std::string, std::string>>& counted, std::vector<files::DeadPlace>& found) {
    // If a thread waits for a page, each place is only a candidate. Then only the place of the file counts on which the
    // child works.
    const std::string worked_on = call.call.in_syscall ? std::string() : files::current_work().path;
    const Clock::duration most = files::has_dead_places() ? files::kLongestFurtherSlowCalls : files::kLongestSlowCalls;
    for (files::DeadPlace& place : proc::find_places(call, pid, tid)) {
      if (!call.call.in_syscall && !worked_on.starts_with(place.folder + '/')) continue;
      if (!place.is_without_disk() || !counted.emplace(place.folder, place.device).second) continue;
      Clock::duration& blocked = blocked_for_[{place.folder, place.device}];
      blocked += since_look;
      place.is_slow = true;
      if (blocked + kUnplaced >= most) found.push_back(std::move(place));
    }
  }

  // Looks for threads of the child and of the opener that have been in one call for a file for too long. Returns the
  // places of these files. Also returns the places whose calls, all together, have taken too long.
  std::vector<files::DeadPlace> look() {
    const Clock::time_point now = Clock::now();
    // Between two looks, this process itself may have waited for a processor.
    const Clock::duration since_look = std::min<Clock::duration>(now - std::exchange(looked_at_, now), 2 * kPace);
    std::set<std::pair<std::string, std::string>> slow;
    bool is_blocked = false;
    std::map<std::int32_t, std::pair<std::string, Clock::time_point>> calls;
    std::vector<files::DeadPlace> found;
    for (const pid_t pid : {child_, opener_}) {
      if (pid == 0) continue;
      for (const std::int32_t tid : proc::list_numbers(proc::proc_path(pid, "task")).numbers) {
        const auto call = proc::find_blocked_call(pid, tid);
        if (!call) continue;
        const auto before = calls_.find(tid);
        const bool is_same = before != calls_.end() && before->second.first == call->identity;
        if (!std::exchange(is_blocked, true)) blocked_in_all_ += since_look;
        if (blocked_in_all_ >= kUnplaced) add_slow_places(*call, pid, tid, since_look, slow, found);
        const Clock::time_point since = is_same ? before->second.second : now;
        if (now - since >= files::kLongestCall) {
          for (files::DeadPlace& place : proc::find_places(*call, pid, tid)) found.push_back(std::move(place));
        }
        calls.emplace(tid, std::pair(call->identity, since));
      }
    }
    calls_ = std::move(calls);
    return found;
  }

  pid_t child_;
  pid_t opener_;  // 0: none
  const Options& options_;
  Clock::time_point began_ = Clock::now();
  std::optional<Clock::time_point> killed_at_;
  std::map<std::int32_t, std::pair<std::string, Clock::time_point>> calls_;  // by thread: its call, and since when
  Clock::time_point looked_at_ = Clock::now();
  bool was_stopped_ = false;  // the latest look has seen that the child or the opener is stopped
  Clock::duration stopped_for_{};
  // How long the looks have seen threads in calls for files, of any place.
  Clock::duration blocked_in_all_{};
  // By folder and device of a place: how long the looks have seen threads in calls for its files.
  std::map<std::pair<std::string, std::string>, Clock::duration> blocked_for_;
};

// Sends SIGKILL. If a call for a file blocks the child, the child ends only when the file system answers or is
// unmounted. Until then, the child counts as a process of forksight.
void abandon(pid_t child, std::chrono::milliseconds patience) {
  ::kill(child, SIGKILL);
  const Clock::time_point start = Clock::now();
  for (;;) {
    if (::waitpid(child, nullptr, WNOHANG) == child) return;
    const auto waited = Clock::now() - start;
    if (waited > patience) break;
    std::this_thread::sleep_for(waited < 2ms ? 50us : 1000us);
  }
  proc::note_own_process(child);
  g_has_abandoned = true;
}

void end_opener(const Opener& opener, std::chrono::milliseconds patience) {
  if (opener.pid == 0) return;
  ::close(opener.socket);
  abandon(opener.pid, patience);
}

}  // namespace

Answer run_child(const Work& work, const Options& options) {
  Answer answer;
  std::size_t costly = 0;  // how many files were too costly
  files::begin_work();
  for (std::size_t known = 0; known <= files::kMaxDeadPlaces;) {
    g_may_try_again = !options.on_output && costly < files::kMaxCostlyFiles;
    files::share_work();
    const std::optional<Opener> opener = start_opener(options.examines_processes);
    const Pipe out = opener ? make_pipe() : Pipe{};
    const Pipe error = out.read >= 0 ? make_pipe() : Pipe{};
    std::fflush(stdout);
    std::fflush(stderr);
    const pid_t self = ::getpid();
    const pid_t child = error.read >= 0 ? ::fork() : -1;
    if (child == 0) {
      if (options.in_child) options.in_child();
      be_child(self, out, error, *opener, options, work);
    }
    if (child < 0) {
      answer.error = errno;
      close_pipe(out);
      close_pipe(error);
      if (opener) end_opener(*opener, kPatience);
      answer.has_child = false;
      return answer;
    }
    ::close(out.write);
    ::close(error.write);
    Watcher::End end = Watcher(child, *opener, options).watch(out.read, error.read);
    ::close(out.read);
    ::close(error.read);
    if (g_may_try_again && !end.costly_file.empty() && files::lower_read_limit(end.costly_file)) {
      ++costly;
      if (!end.status) abandon(child, kPatience);
      end_opener(*opener, kPatience);
      continue;
    }
    if (end.status) {
      end_opener(*opener, kPatience);
      answer.failure = end.failure;
      answer.status = *end.status;
      answer.out = std::move(end.out);
      answer.is_output_refused = end.is_output_refused;
      return answer;
    }
    abandon(child, kShortPatience);
    end_opener(*opener, kShortPatience);
    answer.failure = end.failure == Failure::kNone ? Failure::kDeadPlace : end.failure;
    bool is_new = false;
    for (files::DeadPlace& place : end.dead_places) is_new = files::add_dead_place(std::move(place)) || is_new;
    // The blocked call did not use the list of dead places, so another try would block, too.
    if (!is_new) return answer;
    if (known < files::kMaxDeadPlaces) answer.failure = Failure::kNone;
    ++known;
  }
  return answer;
}

int run_here(const Work& work) {
  const int status = ReaderMaker::call(work);
  parse_only_in_children();
  return status;
}

bool has_abandoned_child() { return g_has_abandoned; }

std::string describe_failure(const Answer& answer) {
  if (!answer.has_child) {
    return fmt::format(
        "forksight could not start the process that reads files and memory ({}). As root, forksight reads data of "
        "other users only in such a process",
        std::strerror(answer.error));
  }
  switch (answer.failure) {
    case Failure::kNone: break;
    case Failure::kUnending: return "the process that reads files and memory for forksight cannot be ended";
    case Failure::kLate: return "the process that reads files and memory for forksight took too long and was ended";
    case Failure::kTooMuch:
      return "the process that reads files and memory for forksight answered with too many bytes and was ended";
    case Failure::kStopped:
      return "the process that reads files and memory for forksight was ended, because a signal stopped it again and "
             "again (SIGSTOP); find the process that sends this signal, and run the command again";
    case Failure::kDeadPlace:
      return "the process that reads files and memory for forksight waits for a file system that does not answer";
  }
  if (!WIFSIGNALED(answer.status)) return "";
  const int signal = WTERMSIG(answer.status);
  return fmt::format("the process that reads files and memory for forksight was ended by signal {} ({}){}", signal,
                     ::strsignal(signal),
                     signal == SIGKILL
                         ? "; somebody killed it, or the kernel had no memory left for it, in the machine or in its "
                           "container"
                         : "");
}

}  // namespace forksight::guard
