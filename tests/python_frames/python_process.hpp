// Runs scene.py in an interpreter of this machine. The constructor returns when all threads wait at their final places.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace forksight::test {

// Returns the paths of CPython 3.`minor`: in /usr/bin, in /usr/local/bin, and in the folder of pyenv.
std::vector<std::string> find_interpreters(int minor);

// Returns everything that the command writes to its standard output.
std::string output_of(const std::vector<std::string>& command);

struct ToldFrame {
  std::string function;
  std::string file;
  int line = 0;
  friend bool operator==(const ToldFrame&, const ToldFrame&) = default;
};

// What Python reports about one of its threads.
struct ToldThread {
  std::string name;
  std::uint64_t pointer = 0;
  std::int32_t tid = 0;
  std::vector<ToldFrame> frames;
};

class PythonProcess {
 public:
  PythonProcess(const std::string& interpreter, const std::string& mode);
  ~PythonProcess();  // ends and reaps the process
  PythonProcess(const PythonProcess&) = delete;
  PythonProcess& operator=(const PythonProcess&) = delete;

  pid_t pid() const { return told_pid_; }  // the process to examine; if the scene forks, this is the child
  const std::vector<ToldThread>& told() const { return told_; }

 private:
  void read_line();

  pid_t pid_ = -1;
  pid_t told_pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::vector<ToldThread> told_;
};

}  // namespace forksight::test
