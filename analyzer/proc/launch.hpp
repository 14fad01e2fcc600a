// Starts CMD as a shell would: same process group, same descriptors, same signals, found through PATH.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace forksight::proc {

using Environment = std::vector<std::pair<std::string, std::string>>;

inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;

struct Launch {
  pid_t pid = -1;
  int exit_code = 0;    // pid < 0: what a shell would exit with
  std::string message;  // pid < 0: why
};

// A descriptor of ours that CMD has as its standard output; -1: what we have ourselves.
struct OutputPlace {
  int fd = -1;
};

// What of this process' signal handling was changed and is to be undone for CMD.
struct SignalState {
  sigset_t mask;
  bool ignores_child = false;  // SIGCHLD was ignored
};

// `overrides` replace or join the variables of this process; `output` may be another; nothing else changes. Returns when the exec has happened
// or failed; only then is `pid` CMD.
Launch launch(const std::vector<std::string>& command, const Environment& overrides, const SignalState& signals,
              OutputPlace output = {});

// The file that PATH leads to, "" if there is none.
std::filesystem::path resolve_program(const std::string& name);

}  // namespace forksight::proc
