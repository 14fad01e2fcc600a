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

// Returns the program that a shell would find in PATH; "" if there is none.
std::filesystem::path find_in_path(const std::string& name);

// Sleeps, or returns early if this process is asked to stop.
void pause_for(Clock::duration time);

// One program, which is started in a new session. Its output goes to FOLDER/NAME.stdout and FOLDER/NAME.stderr.
class Program {
 public:
  Program(const std::vector<std::string>& command, const std::filesystem::path& folder, const std::string& name);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  std::string read_stdout() const;
  std::string read_stderr() const;

  // Returns the exit status as a shell does; nullopt while the program runs.
  std::optional<int> status();

  // Observes what the program and the descendants of this process do: "ok", "error", "hang" or "spin". Returns
  // "undecided" if that is not clear within `limit`.
  std::string watch(Clock::duration limit);

  // Waits for the exit status. Returns nullopt after `limit`.
  std::optional<int> wait(Clock::duration limit);

  // Kills and reaps only the program itself.
  void kill();
  // Asks the program to end (SIGTERM).
  void terminate();
  // Kills and reaps all descendants of this process. True if any descendant still lived.
  bool end_all();

 private:
  void note_end(int wait_status);

  std::filesystem::path stdout_path_;
  std::filesystem::path stderr_path_;
  pid_t pid_ = -1;
  std::optional<int> status_;
};

struct Captured {
  std::optional<int> status;  // nullopt: the command did not end within the limit and was killed
  std::string out;
  std::string err;
};
// Runs a command until it ends; after `limit`, kills it.
Captured capture(const std::vector<std::string>& command, const std::filesystem::path& folder, const std::string& name,
                 Clock::duration limit);

}  // namespace forksight::suite
