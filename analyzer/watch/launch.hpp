// Starts CMD as a shell would: same process group, same descriptors, same signals, found through PATH.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "result.hpp"

namespace forksight::watch {

using Environment = std::vector<std::pair<std::string, std::string>>;

inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;

struct Launch {
  pid_t pid = -1;
  int exit_code = 0;    // pid < 0: what a shell would exit with
  std::string message;  // pid < 0: why
};

// What of this process' signal handling was changed and is to be undone for CMD.
struct SignalState {
  sigset_t mask;
  bool ignores_child = false;  // SIGCHLD was ignored
};

// `overrides` replace or join the variables of this process; nothing else changes. Returns when the exec has happened
// or failed; only then is `pid` CMD.
Launch launch(const std::vector<std::string>& command, const Environment& overrides, const SignalState& signals);

// Where the installed or built tree has the shim, from the running executable.
Result<std::filesystem::path> find_shim();

// The value of LD_PRELOAD with the shim in front of what was there.
std::string preload_value(const std::filesystem::path& shim, const char* before);

// The value of ASAN_OPTIONS with which AddressSanitizer, where it is a library of its own, starts behind the shim: it
// refuses to start behind anything unless told otherwise. What was there is kept, and wins.
std::string asan_options_value(const char* before);

// One sentence if the user's ASAN_OPTIONS ask for that refusal.
std::optional<std::string> find_asan_limit(const char* options);

// The file that PATH leads to, "" if there is none.
std::filesystem::path resolve_program(const std::string& name);

// Why the loader will not, or not quietly, take the shim into this program; one sentence each.
std::vector<std::string> find_preload_limits(const std::filesystem::path& program);

}  // namespace forksight::watch
