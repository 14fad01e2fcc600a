#include "watch/ways_out.hpp"

#include <fmt/core.h>
#include <string.h>

#include <algorithm>
#include <csignal>
#include <deque>
#include <unordered_map>

#include "proc/proc_fs.hpp"
#include "proc/thread_sample.hpp"
#include "watch/proof.hpp"

namespace forksight::watch {
namespace {

constexpr std::size_t kMostNamedSignals = 4;

// A thread causes these signals by its own actions. So a sleeping thread causes none of them.
constexpr std::uint64_t kFaults = bit_of_signal(SIGSEGV) | bit_of_signal(SIGBUS) | bit_of_signal(SIGILL) |
                                  bit_of_signal(SIGFPE) | bit_of_signal(SIGTRAP) | bit_of_signal(SIGSYS);

// Returns the signals whose handlers let no thread go on, because a sleeping thread does not cause them. SIGABRT is one
// of them if the program also handles SIGSEGV: then the handler is one for crashes, such as Python's faulthandler, and
// ends the process. A handler of SIGABRT alone may belong to a watchdog, and so may a handler that a Python script has
// (`is_of_script`).
std::uint64_t faults_among(std::uint64_t caught, bool is_of_script) {
  const bool is_for_crashes = (caught & bit_of_signal(SIGSEGV)) != 0 && !is_of_script;
  return kFaults | (is_for_crashes ? bit_of_signal(SIGABRT) : 0);
}

// Finds the control group that somebody froze: the group of this path, or the nearest group above it. "": there is no
// such group. `root`: the folder at which the hierarchy is mounted. A group counts as frozen if the text of its `file`
// begins with `is_told`.
std::string find_frozen_group(const std::string& root, std::string_view path, const char* file,
                              std::string_view is_told) {
  for (std::string_view at = path;; at = at.substr(0, at.rfind('/'))) {
    const std::string folder = root + std::string(at == "/" ? std::string_view() : at);
    if (proc::read_file(fmt::format("{}/{}", folder, file)).text.starts_with(is_told)) return folder;
    if (at.empty() || at == "/") return {};
  }
}

}  // namespace

std::uint64_t find_caught(const proc::Status& status, bool has_libc, bool has_python_abort_handler) {
  return status.caught & ~status.blocked & ~faults_among(status.caught, has_python_abort_handler) &
         ~(has_libc ? kReservedSignals : 0);
}

Handlers find_handlers(const ProcessEvidence& evidence) {
  const std::uint64_t reserved = evidence.has_libc ? kReservedSignals : 0;
  Handlers handlers;
  for (const proc::ThreadSample& thread : evidence.second.threads) {
    const std::uint64_t caught = thread.status.caught;
    // A timer may send any signal, also one that otherwise only a fault causes.
    const std::uint64_t faults = faults_among(caught, evidence.has_python_abort_handler);
    const std::uint64_t never_come = (reserved | faults) & ~evidence.timer_signals;
    if (!thread.ended()) handlers.ways_out |= caught & ~thread.status.blocked & ~evidence.own_signals & ~never_come;
  }
  const bool has_ctrl_c = evidence.has_python_interrupt && (handlers.ways_out & bit_of_signal(SIGINT)) != 0;
  if (has_ctrl_c) {
    handlers.ways_out &= ~bit_of_signal(SIGINT);
    handlers.for_ctrl_c = true;
  }
  return handlers;
}

bool is_python_program(std::string_view exe) {
  const std::size_t slash = exe.rfind('/');
  return exe.substr(slash == std::string_view::npos ? 0 : slash + 1).starts_with("python");
}

std::string_view find_hold(std::string_view function) {
  const auto has = [&](std::string_view part) { return function.find(part) != std::string_view::npos; };
  if (has("freez") || has("refrigerator")) return "is frozen";
  if (has("seccomp")) return "is held by a seccomp filter";
  if (has("userfault")) return "waits for a page of memory that a userfaultfd supplies";
  return {};
}

std::vector<std::string> find_freezer_files(std::string_view cgroup) {
  std::vector<std::string> files;
  while (!cgroup.empty()) {
    const std::size_t end = std::min(cgroup.find('\n'), cgroup.size());
    const std::string_view line = cgroup.substr(0, end);
    cgroup.remove_prefix(std::min(end + 1, cgroup.size()));
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (path.empty() || path.front() != '/') continue;
    if (controllers.empty()) {
      files.push_back(fmt::format("/sys/fs/cgroup{}/cgroup.events", path));
      files.push_back(fmt::format("/sys/fs/cgroup/unified{}/cgroup.events", path));
    } else if (("," + std::string(controllers) + ",").find(",freezer,") != std::string::npos) {
      files.push_back(fmt::format("/sys/fs/cgroup/freezer{}/freezer.state", path));
    }
  }
  return files;
}

bool is_frozen_text(std::string_view text) {
  return text.starts_with("FROZEN") || text.starts_with("FREEZING") ||
         ("\n" + std::string(text)).find("\nfrozen 1") != std::string::npos;
}

bool Freezers::is_frozen(std::int32_t pid) {
  const auto says_so = [this](const std::string& file) {
    const auto [known, is_new] = files_.try_emplace(file);
    if (is_new) known->second = is_frozen_text(proc::read_file(file).text);
    return known->second;
  };
  return std::ranges::any_of(find_freezer_files(proc::read_file(proc::proc_path(pid, "cgroup")).text), says_so);
}

std::string how_to_thaw(std::int32_t pid) {
  constexpr std::string_view kEvents = "/cgroup.events";
  constexpr std::string_view kState = "/freezer.state";
  constexpr std::string_view kUnified = "/sys/fs/cgroup/unified";
  constexpr std::string_view kFreezer = "/sys/fs/cgroup/freezer";
  constexpr std::string_view kRoot = "/sys/fs/cgroup";
  for (const std::string& file : find_freezer_files(proc::read_file(proc::proc_path(pid, "cgroup")).text)) {
    if (!is_frozen_text(proc::read_file(file).text)) continue;
    const bool is_first_version = file.ends_with(kState);
    const std::string_view root = is_first_version ? kFreezer : file.starts_with(kUnified) ? kUnified : kRoot;
    std::string_view path = file;
    path.remove_suffix(is_first_version ? kState.size() : kEvents.size());
    path.remove_prefix(root.size());
    const std::string group = is_first_version
                                  ? find_frozen_group(std::string(root), path, "freezer.self_freezing", "1")
                                  : find_frozen_group(std::string(root), path, "cgroup.freeze", "1");
    if (group.empty()) continue;
    return is_first_version ? fmt::format("echo THAWED > {}/freezer.state", group)
                            : fmt::format("echo 0 > {}/cgroup.freeze", group);
  }
  return {};
}

std::string name_signals(std::uint64_t signals) {
  std::vector<std::string> names;
  for (int signal = 1; signal <= 64; ++signal) {
    if ((signals & bit_of_signal(signal)) == 0) continue;
    const char* const name = signal < SIGRTMIN ? ::sigabbrev_np(signal) : nullptr;
    names.push_back(name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name));
  }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i == kMostNamedSignals && names.size() > kMostNamedSignals + 1)
      return text + fmt::format(" and {} more", names.size() - kMostNamedSignals);
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  }
  return text;
}

std::vector<std::optional<std::size_t>> find_nearest_ways_out(const std::vector<ProcessWaits>& processes,
                                                              const std::vector<bool>& has_one) {
  std::unordered_map<std::int32_t, std::size_t> by_pid;
  for (std::size_t at = 0; at < processes.size(); ++at) by_pid.emplace(processes[at].pid, at);
  std::vector<std::vector<std::size_t>> waiters(processes.size());
  for (std::size_t at = 0; at < processes.size(); ++at) {
    for (const ThreadWaits& thread : processes[at].threads) {
      for (const Waker& waker : thread.wakers) {
        const auto target = by_pid.find(waker.pid);
        if (target != by_pid.end() && target->second != at) waiters[target->second].push_back(at);
      }
    }
  }
  std::vector<std::optional<std::size_t>> rescuers(processes.size());
  std::deque<std::size_t> open;
  for (std::size_t at = 0; at < processes.size(); ++at) {
    if (!has_one[at]) continue;
    rescuers[at] = at;
    open.push_back(at);
  }
  while (!open.empty()) {
    const std::size_t at = open.front();
    open.pop_front();
    for (const std::size_t waiter : waiters[at]) {
      if (rescuers[waiter]) continue;
      rescuers[waiter] = rescuers[at];
      open.push_back(waiter);
    }
  }
  return rescuers;
}

}  // namespace forksight::watch
