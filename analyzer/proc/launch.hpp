// Starts a command, CMD, as a shell would. CMD is found through PATH. CMD inherits the process group and the
// descriptors of this process. CMD gets the signal handling that this process had before this process changed its own.
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
  int exit_code = 0;    // if pid < 0: the exit status that a shell would use
  std::string message;  // if pid < 0: the reason
};

// A descriptor of this process that becomes CMD's standard output; -1: the standard output of this process.
struct OutputPlace {
  int fd = -1;
};

// What this process changed in its signal handling and must undo for CMD.
struct SignalState {
  sigset_t mask;
  bool ignores_child = false;  // SIGCHLD was ignored
};

// `overrides` replaces or extends the environment of this process, and `output` may replace the standard output.
// `signals` gives CMD its signal mask, and says whether CMD ignores SIGCHLD. CMD inherits everything else from this
// process. Returns when the exec has succeeded or failed. `pid` is set only if the exec has succeeded.
Launch launch(const std::vector<std::string>& command, const Environment& overrides, const SignalState& signals,
              OutputPlace output = {});

// Returns the file that a shell would run for `name`, found through PATH; "" if there is none.
std::filesystem::path resolve_program(const std::string& name);

}  // namespace forksight::proc
