// Says why a process cannot be examined, and what to do: one sentence for each reason.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace forksight::image {

// Finds an obstacle that no right of forksight removes: the process does not exist, or is a kernel thread, a zombie or
// forksight itself. nullopt: there is none.
std::optional<std::string> find_obstacle(std::int32_t pid);

// Says why the kernel does not let forksight read the memory of process `pid`, what would help, and what can be seen
// without help.
std::string explain_refusal(std::int32_t pid);

// The kind of environment in which forksight runs. The environment decides which commands give forksight more rights.
enum class Place { kMachine, kDocker, kPodman, kKubernetes };

// The facts that show why the kernel did not let forksight examine a process.
struct TraceRights {
  std::int32_t pid = 0;
  bool has_capability = false;             // forksight has CAP_SYS_PTRACE now
  bool can_have_capability = true;         // root could have CAP_SYS_PTRACE: the bounding set has it
  bool is_root = false;                    // forksight is root in its user namespace
  std::optional<std::int64_t> other_user;  // the user of the process, if it is not forksight's
  std::int64_t yama = 0;                   // kernel.yama.ptrace_scope
  Place place = Place::kMachine;
  std::string pod;  // kKubernetes: the name of this pod
};

// `status`: the text of /proc/PID/status.
TraceRights read_trace_rights(std::int32_t pid, std::string_view status);

// Decides by the files /.dockerenv and /run/.containerenv and by the environment variable KUBERNETES_SERVICE_HOST. A
// pure function.
Place find_place(bool has_dockerenv, bool has_containerenv, const char* kubernetes_host);

// Says why the kernel refused, and which command helps at this place. A pure function.
std::string explain_lack(const TraceRights& rights);

// The name that a process has given itself, with its pid: "12 (make)".
std::string pid_and_name(std::int32_t pid);

}  // namespace forksight::image
