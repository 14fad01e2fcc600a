#include "image/refusal.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "proc/namespaces.hpp"
#include "proc/own_process.hpp"
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

bool has_trace_capability(std::string_view status, std::string_view set) {
  const auto field = find_field(status, set);
  return field && (std::strtoull(std::string(*field).c_str(), nullptr, 16) >> kCapSysPtrace & 1U) != 0;
}

// Compares the real, effective and saved user of the process with the user who runs forksight. Returns the first of the
// three that differs.
std::optional<std::int64_t> find_other_user(std::string_view status) {
  std::string_view ids = find_field(status, "Uid").value_or("");
  for (int column = 0; column < 3 && !ids.empty(); ++column) {
    const std::size_t length = std::min(ids.find_first_of("\t "), ids.size());
    const auto id = parse_decimal(ids.substr(0, length));
    if (id && *id != static_cast<std::int64_t>(proc::caller())) return id;
    ids.remove_prefix(std::min(length + 1, ids.size()));
  }
  return std::nullopt;
}

std::optional<std::int64_t> read_yama() {
  return parse_decimal(proc::read_file("/proc/sys/kernel/yama/ptrace_scope").text);
}

// Describes what everybody may see of the process, for example ". Without that right, only thread states are visible:
// 13 asleep, 0 running".
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

// Explains why there is no process with this pid. The pid may be a number from inside a container, or one from outside
// forksight's container.
std::string explain_absence(std::int32_t pid) {
  if (const std::int32_t here = pid > 0 ? proc::find_called(pid) : 0; here != 0) {
    return fmt::format("does not exist here; inside of a container, process {} has this pid", pid_and_name(here));
  }
  if (proc::is_in_initial_pid_namespace())
    return "there is no such process; it may have ended. `ps -e` lists the processes";
  return "there is no such process in this pid namespace (container): a process outside of it can be seen only from "
         "outside";
}

}  // namespace

std::string pid_and_name(std::int32_t pid) {
  const auto stat = proc::read_stat(pid);
  return stat ? fmt::format("{} ({})", pid, stat->comm) : fmt::format("{}", pid);
}

std::optional<std::string> find_obstacle(std::int32_t pid) {
  if (const auto foreign = proc::find_foreign_proc()) return fmt::format("process {}: {}", pid, *foreign);
  if (proc::is_own_process(pid))
    return fmt::format("process {}: is forksight itself: name the process that hangs", pid);
  const auto status = proc::read_file(proc_path(pid, "status"));
  if (pid <= 0 || !status) {
    if (pid > 0 && kill(pid, 0) != 0 && errno == EPERM) {
      return fmt::format("process {}: belongs to another user, and is hidden: run forksight as that user or as root",
                         pid);
    }
    return fmt::format("process {}: {}", pid, explain_absence(pid));
  }
  if (const auto leader = number_field(status.text, "Tgid"); leader && *leader != pid) {
    return fmt::format("process {}: is a thread of process {}: name that process", pid, *leader);
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

TraceRights read_trace_rights(std::int32_t pid, std::string_view status) {
  TraceRights rights;
  const auto own = proc::read_file("/proc/self/status");
  rights.pid = pid;
  rights.has_capability = has_trace_capability(own.text, "CapEff");
  rights.can_have_capability = has_trace_capability(own.text, "CapBnd");
  rights.is_root = proc::caller() == 0;
  rights.other_user = find_other_user(status);
  rights.yama = read_yama().value_or(0);
  rights.place = find_place(::access("/.dockerenv", F_OK) == 0, ::access("/run/.containerenv", F_OK) == 0,
                            std::getenv("KUBERNETES_SERVICE_HOST"));
  utsname names{};
  if (rights.place == Place::kKubernetes && ::uname(&names) == 0) rights.pod = names.nodename;
  return rights;
}

Place find_place(bool has_dockerenv, bool has_containerenv, const char* kubernetes_host) {
  if (kubernetes_host != nullptr && *kubernetes_host != '\0') return Place::kKubernetes;
  if (has_dockerenv) return Place::kDocker;
  return has_containerenv ? Place::kPodman : Place::kMachine;
}

namespace {

// Names the command that helps. If forksight is already root and was refused, the container as a whole lacks the
// capability.
std::string name_remedy(const TraceRights& rights) {
  const bool root_has_it = rights.can_have_capability && !rights.is_root;
  switch (rights.place) {
    case Place::kMachine:
      return rights.can_have_capability
                 ? fmt::format("run it as root: sudo forksight why {}", rights.pid)
                 : "run forksight where the bounding set has CAP_SYS_PTRACE: here not even root may have it";
    case Place::kDocker:
      return root_has_it
                 ? fmt::format(
                       "run it as root of the container: docker exec --user 0 --privileged CONTAINER forksight why {}",
                       rights.pid)
                 : "start the container with that right: docker run --cap-add SYS_PTRACE";
    case Place::kPodman:
      return root_has_it
                 ? fmt::format(
                       "run it as root of the container: podman exec --user 0 --privileged CONTAINER forksight why {}",
                       rights.pid)
                 : "start the container with that right: podman run --cap-add SYS_PTRACE";
    case Place::kKubernetes: break;
  }
  return fmt::format(
      "look from a debug container that has that right: kubectl debug -it {} --profile=general --target=CONTAINER "
      "--image=IMAGE -- forksight why {}",
      rights.pod, rights.pid);
}

std::string explain_yama(const TraceRights& rights) {
  const bool is_sysctl_ours = rights.yama == 1 && rights.place == Place::kMachine;
  return fmt::format("the kernel lets only {} examine it (kernel.yama.ptrace_scope is {}): {}{}",
                     rights.yama == 1 ? "its ancestors and CAP_SYS_PTRACE" : "CAP_SYS_PTRACE", rights.yama,
                     name_remedy(rights),
                     is_sysctl_ours ? "; or for all until the next boot: sudo sysctl kernel.yama.ptrace_scope=0" : "");
}

std::string name_lack(const TraceRights& rights) {
  if (rights.other_user && !rights.has_capability) {
    return fmt::format("belongs to another user (uid {}), and forksight has no CAP_SYS_PTRACE: {}", *rights.other_user,
                       name_remedy(rights));
  }
  if (rights.yama >= 3) {
    return "the kernel lets nobody examine processes until it is restarted (kernel.yama.ptrace_scope is 3): start the "
           "program with `forksight run`, whose shim records without that right";
  }
  if (rights.has_capability) {
    return "the kernel does not let forksight examine it, whatever rights forksight has, because of its user namespace "
           "or a security module: run forksight inside of its container, or outside of all containers";
  }
  if (rights.yama >= 1) return explain_yama(rights);
  return fmt::format(
      "is protected from its own user (it changed its rights, or asked for it by PR_SET_DUMPABLE), and forksight has "
      "no "
      "CAP_SYS_PTRACE: {}",
      name_remedy(rights));
}

}  // namespace

std::string explain_lack(const TraceRights& rights) {
  return fmt::format("process {}: {}", rights.pid, name_lack(rights));
}

std::string explain_refusal(std::int32_t pid) {
  const auto status = proc::read_file(proc_path(pid, "status"));
  if (!status) return fmt::format("process {}: ended while forksight examined it", pid);
  return explain_lack(read_trace_rights(pid, status.text)) + describe_seen(pid);
}

}  // namespace forksight::image
