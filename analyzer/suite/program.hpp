// Starts a program and observes it from outside: whether it runs, hangs or spins, and how it ends.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace forksight::suite {

using Clock = std::chrono::steady_clock;

// The program that a shell would find in PATH; "" if there is none.
std::filesystem::path find_in_path(const std::string& name);

// Sleeps, or returns early if this process is asked to stop.
void pause_for(Clock::duration time);

// One program in a session of its own. Its output goes to FOLDER/NAME.stdout and FOLDER/NAME.stderr.
class Program {
 public:
  Program(const std::vector<std::string>& command, const std::filesystem::path& folder, const std::string& name);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  std::string read_stdout() const;
  std::string read_stderr() const;

  // The exit status as in a shell; nullopt while it runs.
  std::optional<int> status();

  // What the program and its descendants do: "ok", "error", "hang" or "spin"; "undecided" after `limit`.
  std::string watch(Clock::duration limit);

  // The exit status, or nullopt after `limit`.
  std::optional<int> wait(Clock::duration limit);

  // Kills and reaps only the program itself.
  void kill();
  // Asks it to end (SIGTERM).
  void terminate();
  // Kills and reaps all descendants of this process. True if any of them still lived.
  bool end_all();

 private:
  void note_end(int wait_status);

  std::filesystem::path stdout_path_;
  std::filesystem::path stderr_path_;
  pid_t pid_ = -1;
  std::optional<int> status_;
};

struct Captured {
  std::optional<int> status;  // nullopt: it did not end within the limit and was killed
  std::string out;
  std::string err;
};
// Runs a command to its end.
Captured capture(const std::vector<std::string>& command, const std::filesystem::path& folder, const std::string& name,
                 Clock::duration limit);

}  // namespace forksight::suite
