// Starts a program in a new process group, and leaves no process of the group behind.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace forksight::test {

class FixtureProcess {
 public:
  // With `capture`, standard error of the program goes to a file, which stderr_text() reads. Without `capture`, the
  // program has the standard error of the test. If `folder` is not empty, it is the working directory of the program.
  explicit FixtureProcess(const std::vector<std::string>& command, bool capture = false,
                          const std::string& folder = "");
  // Kills the group, and reaps all of its processes.
  ~FixtureProcess();
  FixtureProcess(const FixtureProcess&) = delete;
  FixtureProcess& operator=(const FixtureProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Blocks until the program has written a byte. Returns false if the program closed its output instead.
  bool wait_ready();
  // Blocks until the first process has ended. Returns its status as wait(2) gives it.
  int wait_end();
  std::string stdout_text();        // reads until end of file
  std::string stderr_text() const;  // what was written so far
  // Blocks until all processes of the group have ended, and reaps them.
  void wait_group_end();
  // Blocks until standard error contains `text`. Returns false if the first process ended without writing it.
  bool wait_stderr(const std::string& text);

 private:
  pid_t pid_ = -1;
  int output_ = -1;
  int error_ = -1;
};

}  // namespace forksight::test
