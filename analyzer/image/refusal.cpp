#include "image/refusal.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "proc/namespaces.hpp"
#include "proc/proc_fs.hpp"

namespace forksight::image {
namespace {

using proc::find_field;
using proc::parse_decimal;
using proc::proc_path;

constexpr unsigned kCapSysPtrace = 19;  // linux/capability.h

std::optional<std::int64_t> number_field(std::string_view status, std::string_view name) {
  const auto field = find_field(status, name);
  return field ? parse_decimal(*field) : std::nullopt;
}

bool may_trace_everyone() {
  const auto status = proc::read_file("/proc/self/status");
  const auto field = find_field(status.text, "CapEff");
  return field && (std::strtoull(std::string(*field).c_str(), nullptr, 16) >> kCapSysPtrace & 1U) != 0;
}

// All of real, effective and saved user must be ours.
std::optional<std::int64_t> find_other_user(std::string_view status) {
  std::string_view ids = find_field(status, "Uid").value_or("");
  for (int column = 0; column < 3 && !ids.empty(); ++column) {
    const std::size_t length = std::min(ids.find_first_of("\t "), ids.size());
    const auto id = parse_decimal(ids.substr(0, length));
    if (id && *id != static_cast<std::int64_t>(geteuid())) return id;
    ids.remove_prefix(std::min(length + 1, ids.size()));
  }
  return std::nullopt;
}

std::optional<std::int64_t> read_yama() {
  return parse_decimal(proc::read_file("/proc/sys/kernel/yama/ptrace_scope").text);
}

// What anybody may know: ". Without that right, only thread states are visible: 13 asleep, 0 running".
std::string describe_seen(std::int32_t pid) {
  std::size_t asleep = 0;
  std::size_t running = 0;
  std::size_t others = 0;
  for (const std::int32_t tid : proc::list_numbers(proc_path(pid, "task")).numbers) {
    const auto stat = proc::parse_stat(proc::read_file(proc::task_path(pid, tid, "stat")).text);
    if (!stat || stat->state == 'Z' || stat->state == 'X') continue;
    ++(stat->state == 'S' ? asleep : stat->state == 'R' ? running : others);
  }
  if (asleep + running + others == 0) return {};
  const std::string rest = others == 0 ? std::string() : fmt::format(", {} stopped or in the kernel", others);
  return fmt::format(". Without that right, only thread states are visible: {} asleep, {} running{}", asleep, running,
                     rest);
}

bool has_live_thread(std::int32_t pid) {
  for (const std::int32_t tid : proc::list_numbers(proc_path(pid, "task")).numbers) {
    const auto stat = proc::parse_stat(proc::read_file(proc::task_path(pid, tid, "stat")).text);
    if (stat && stat->state != 'Z' && stat->state != 'X') return true;
  }
  return false;
}

// The number may be one of a container's, or of the world around ours.
std::string explain_absence(std::int32_t pid) {
  if (const std::int32_t here = pid > 0 ? proc::find_called(pid) : 0; here != 0) {
    return fmt::format("there is none here; a process in a container is called so there: it is {} here",
                       pid_and_name(here));
  }
  if (proc::is_in_initial_pid_namespace()) return "there is none";
  return "there is none in this pid namespace (container): what runs outside of it is seen from there only";
}

}  // namespace

std::string pid_and_name(std::int32_t pid) {
  const auto stat = proc::read_stat(pid);
  return stat ? fmt::format("{} ({})", pid, stat->comm) : fmt::format("{}", pid);
}

std::optional<std::string> find_obstacle(std::int32_t pid) {
  if (const auto foreign = proc::find_foreign_proc()) return fmt::format("process {}: {}", pid, *foreign);
  if (pid == getpid()) return fmt::format("process {}: is forksight itself", pid);
  const auto status = proc::read_file(proc_path(pid, "status"));
  if (pid <= 0 || !status) {
    if (pid > 0 && kill(pid, 0) != 0 && errno == EPERM) {
      return fmt::format("process {}: is another user's, and hidden: run forksight as that user or as root", pid);
    }
    return fmt::format("process {}: {}", pid, explain_absence(pid));
  }
  if (const auto leader = number_field(status.text, "Tgid"); leader && *leader != pid) {
    return fmt::format("process {}: is a thread of process {}: ask for that", pid, *leader);
  }
  const std::string_view state = find_field(status.text, "State").value_or("?");
  const bool is_zombie = state.starts_with('Z') || state.starts_with('X');
  if (is_zombie && !has_live_thread(pid)) {
    const auto parent = static_cast<std::int32_t>(number_field(status.text, "PPid").value_or(0));
    return fmt::format("process {}: has ended already, it is a zombie: its parent {} has not waited for it", pid,
                       pid_and_name(parent));
  }
  if (!is_zombie && !find_field(status.text, "VmSize")) {
    return fmt::format("process {}: is a thread of the kernel ({})", pid,
                       find_field(status.text, "Name").value_or("?"));
  }
  return std::nullopt;
}

std::optional<std::string> explain_yama(std::int64_t scope) {
  if (scope <= 0) return std::nullopt;
  if (scope == 1) {
    return "the kernel lets only its ancestors look into it (kernel.yama.ptrace_scope is 1): run forksight as root, "
           "with sudo, with CAP_SYS_PTRACE, or start the program by `forksight run`";
  }
  if (scope == 2) {
    return "the kernel lets only root look into processes (kernel.yama.ptrace_scope is 2): run forksight as root, or "
           "with CAP_SYS_PTRACE";
  }
  return "the kernel lets nobody look into processes until it is restarted (kernel.yama.ptrace_scope is 3): without "
         "that sysctl, or by `forksight run`, which needs no such right for what the shim records";
}

namespace {

std::string name_lack(std::int32_t pid) {
  const auto status = proc::read_file(proc_path(pid, "status"));
  if (!status) return fmt::format("process {}: ended while it was looked at", pid);
  const bool is_privileged = may_trace_everyone();
  const auto user = find_other_user(status.text);
  if (user && !is_privileged) {
    return fmt::format(
        "process {}: belongs to another user (uid {}): run forksight as that user, as root, or with "
        "CAP_SYS_PTRACE",
        pid, *user);
  }
  const auto scope = read_yama();
  const auto yama = explain_yama(scope.value_or(0));
  if (yama && (!is_privileged || *scope >= 3)) return fmt::format("process {}: {}", pid, *yama);
  if (is_privileged) {
    return fmt::format(
        "process {}: the kernel does not let us look into it, whatever our rights are: its user "
        "namespace or a security module stands between",
        pid);
  }
  return fmt::format(
      "process {}: is protected from its own user (it changed its rights, or asked for it by "
      "PR_SET_DUMPABLE): run forksight as root, or with CAP_SYS_PTRACE",
      pid);
}

}  // namespace

std::string explain_refusal(std::int32_t pid) { return name_lack(pid) + describe_seen(pid); }

}  // namespace forksight::image
