// Starts a program in a process group of its own, and leaves no process behind.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace forksight::test {

class FixtureProcess {
 public:
  // With `capture`, standard error goes to a file of its own, which stderr_text() reads; else it is the test's.
  // `folder`, if given, is the working directory.
  explicit FixtureProcess(const std::vector<std::string>& command, bool capture = false,
                          const std::string& folder = "");
  // Kills the group, and reaps all of its descendants.
  ~FixtureProcess();
  FixtureProcess(const FixtureProcess&) = delete;
  FixtureProcess& operator=(const FixtureProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Blocks until the program wrote a byte, or closed its output: then false.
  bool wait_ready();
  // Blocks until the first process ended; its status as of wait(2).
  int wait_end();
  std::string stdout_text();        // to the end of file
  std::string stderr_text() const;  // so far
  // Blocks until all of its descendants have ended.
  void wait_group_end();
  // Blocks until `text` stands in standard error, or the first process ended: then false.
  bool wait_stderr(const std::string& text);

 private:
  pid_t pid_ = -1;
  int output_ = -1;
  int error_ = -1;
};

}  // namespace forksight::test
