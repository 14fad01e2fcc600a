// Why a process cannot be looked at: one sentence each, with what to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace forksight::image {

// What rules a process out whatever our rights are: there is none, it is a kernel thread, a zombie, forksight itself.
std::optional<std::string> find_obstacle(std::int32_t pid);

// Why the kernel does not let us read its memory, what would, and what is seen all the same.
std::string explain_refusal(std::int32_t pid);

// By kernel.yama.ptrace_scope; nullopt: it does not stand in the way.
std::optional<std::string> explain_yama(std::int64_t scope);

// What another process says on its name: "12 (make)".
std::string pid_and_name(std::int32_t pid);

}  // namespace forksight::image
