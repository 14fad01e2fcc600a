#include "cli/command_line.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace forksight::test {

namespace {

std::string make_file() {
  std::string name = "/tmp/forksight_cli_XXXXXX";
  const int fd = ::mkstemp(name.data());
  if (fd < 0) throw std::runtime_error("no temporary file");
  ::close(fd);
  return name;
}

std::string take_file(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(name).rdbuf();
  ::unlink(name.c_str());
  return text.str();
}

}  // namespace

Finished run_forksight(const std::vector<std::string>& arguments, const std::string& out_path,
                       const std::string& folder) {
  // Standard output and standard error go to files. If they went to two pipes, this function would have to read both
  // pipes at the same time, because a full pipe blocks the command.
  const std::string out = out_path.empty() ? make_file() : out_path;
  const std::string err = make_file();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY, 0);
  if (!folder.empty()) posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  std::vector<std::string> words = {"forksight"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, FORKSIGHT_COMMAND, &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error("the command could not be started");
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) throw std::runtime_error("waitpid");
  Finished run;
  run.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (out_path.empty()) run.out = take_file(out);
  run.err = take_file(err);
  return run;
}

}  // namespace forksight::test
