#include "command/pager.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "command/output.hpp"

namespace forksight {
namespace {

bool is_installed(std::string_view program) {
  const char* const path = std::getenv("PATH");
  std::string_view folders = path == nullptr ? "/usr/bin:/bin" : path;
  while (!folders.empty()) {
    const std::size_t length = std::min(folders.find(':'), folders.size());
    const std::string file = fmt::format("{}/{}", folders.substr(0, length), program);
    if (::access(file.c_str(), X_OK) == 0) return true;
    folders.remove_prefix(std::min(length + 1, folders.size()));
  }
  return false;
}

// Returns the pager as a command for the shell; "" if no pager is to be used.
std::string find_pager() {
  if (const char* const wanted = std::getenv("PAGER"); wanted != nullptr) return std::strcmp(wanted, "cat") == 0 ? "" : wanted;
  return is_installed("less") ? "less" : "";
}

bool fits_on_terminal(std::string_view text) {
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 1 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return true;
  // One line of the terminal is left for the prompt.
  return std::ranges::count(text, '\n') < size.ws_row;
}

// As long as an object of this class exists, forksight ignores Ctrl-C, because Ctrl-C is meant for the pager. forksight
// also does not end when the pager ends early (SIGPIPE).
class IgnoredSignals {
 public:
  IgnoredSignals() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &ignore, &before_[i]);
  }
  ~IgnoredSignals() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  IgnoredSignals(const IgnoredSignals&) = delete;
  IgnoredSignals& operator=(const IgnoredSignals&) = delete;

  static constexpr std::array kSignals{SIGINT, SIGQUIT, SIGPIPE};

 private:
  std::array<struct sigaction, kSignals.size()> before_{};
};

// Starts the pager with `input` as its standard input, and with default signal actions. Returns -1 if the pager cannot
// be started.
pid_t start(const std::string& pager, int input, int other_end) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  sigset_t defaults;
  ::sigemptyset(&defaults);
  for (const int signal : IgnoredSignals::kSignals) ::sigaddset(&defaults, signal);
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  ::posix_spawn_file_actions_addclose(&files, input);
  ::posix_spawn_file_actions_addclose(&files, other_end);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  std::array<std::string, 3> words{"sh", "-c", pager};
  std::array<char*, 4> argv{words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t child = -1;
  const int failure = ::posix_spawn(&child, "/bin/sh", &files, &attributes, argv.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  return failure == 0 ? child : -1;
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(fd, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;  // the pager has ended
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

// False if no pager could be started. In that case nothing was written.
bool write_to_pager(const std::string& pager, std::string_view text) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  const IgnoredSignals ignored;
  const pid_t child = start(pager, ends[0], ends[1]);
  ::close(ends[0]);
  if (child > 0) write_all(ends[1], text);
  ::close(ends[1]);
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  // 127: the shell found no such command.
  return child > 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 127);
}

}  // namespace

bool write_paged(std::string_view text) {
  const std::string pager = fits_on_terminal(text) ? "" : find_pager();
  if (pager.empty()) return write_out(text);
  // The same options as git uses for less: F ends at once if all text fits on the screen, R shows colours, X leaves the
  // text on the screen.
  ::setenv("LESS", "FRX", 0);
  return write_to_pager(pager, text) || write_out(text);
}

}  // namespace forksight
