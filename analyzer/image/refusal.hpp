// Why a process cannot be looked at: one sentence each, with what to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace forksight::image {

// What rules a process out whatever our rights are: there is none, it is a kernel thread, a zombie, forksight itself.
std::optional<std::string> find_obstacle(std::int32_t pid);

// Why the kernel does not let us read its memory, what would, and what is seen all the same.
std::string explain_refusal(std::int32_t pid);

// What this process is in, as far as it matters for rights.
enum class Place { kMachine, kDocker, kPodman, kKubernetes };

// What decides whether the kernel lets us look into a process of which it said that we may not.
struct TraceRights {
  std::int32_t pid = 0;
  bool has_capability = false;             // CAP_SYS_PTRACE, now
  bool can_have_capability = true;         // root could: it is in the bounding set
  bool is_root = false;                    // as this user namespace counts
  std::optional<std::int64_t> other_user;  // of the process, if it is not ours
  std::int64_t yama = 0;                   // kernel.yama.ptrace_scope
  Place place = Place::kMachine;
  std::string pod;  // kKubernetes: the name of this pod
};

// `status`: /proc/PID/status.
TraceRights read_trace_rights(std::int32_t pid, std::string_view status);

// By /.dockerenv and /run/.containerenv, and what the environment says of a cluster. Pure.
Place find_place(bool has_dockerenv, bool has_containerenv, const char* kubernetes_host);

// What stands in the way, and the command that removes it here. Pure.
std::string explain_lack(const TraceRights& rights);

// What another process says on its name: "12 (make)".
std::string pid_and_name(std::int32_t pid);

}  // namespace forksight::image
