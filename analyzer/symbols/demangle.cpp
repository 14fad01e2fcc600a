#include "symbols/demangle.hpp"

#include <cxxabi.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>

namespace forksight::symbols {
namespace {

// A name is demangled in this process if its bound_text() is at most kMaxBound. kMaxBound is high, because bound_text()
// is far above the real length of the text.
constexpr double kMaxBound = 512.0 * (1U << 20U);
// The processor time that a child may use. Names of honest programs take less than a millisecond.
constexpr suseconds_t kMaxMicroseconds = 300'000;
constexpr int kMostChildren = 200;  // the most children in one run of the command
constexpr int kMostFailures = 3;
constexpr char kEnd = '\n';  // the last byte that the child sends: without it, the child did not finish

std::optional<std::string> demangle_here(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                         &std::free);
  if (status != 0 || !text) return std::nullopt;
  const std::size_t length = std::strlen(text.get());
  if (length > kMaxNameBytes) return std::nullopt;
  return std::string(text.get(), length);
}

// Returns a number of bytes that the text for the name does not exceed. In the Itanium C++ ABI, S1_ (S2_, ...) and T1_
// (T2_, ...) stand for earlier parts of the name. S1_ stands for the same part wherever it occurs in a name. This part
// ends before the first S1_, so it cannot contain S1_. So if S1_ occurs n times, the text is at most n + 1 times as
// long as without S1_. T1_ may stand for a different part in each template. So each occurrence of T1_ may double the
// text.
double bound_text(std::string_view name) {
  constexpr double kLongestWord = 128;  // two bytes may stand for a long text: "Ss" for the whole name of std::string
  std::map<std::string_view, int> uses;
  double bound = kLongestWord * static_cast<double>(name.size());
  for (std::size_t at = 0; at < name.size(); ++at) {
    // A pack expansion repeats its pattern for each element of the pack.
    if (name.substr(at, 2) == "Dp" || name.substr(at, 2) == "sp") bound *= static_cast<double>(name.size());
    if (name[at] != 'S' && name[at] != 'T') continue;
    const std::size_t end = name.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", at + 1);
    if (end == std::string_view::npos || name[end] != '_') continue;
    if (name[at] == 'T') {
      bound *= 2;
    } else {
      ++uses[name.substr(at, end - at)];
    }
  }
  for (const auto& [part, count] : uses) bound *= 1.0 + count;
  return bound;
}

[[noreturn]] void be_child(const char* name, int out) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const itimerval time{{0, 0}, {0, kMaxMicroseconds}};
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPROF, SIG_DFL);  // so that the timer's signal ends this process
  ::setitimer(ITIMER_PROF, &time, nullptr);
  std::string text = demangle_here(name).value_or("");
  text.push_back(kEnd);
  // The pipe is empty and takes 64 KiB, and the text is shorter. So this write does not wait for the reader.
  ::_exit(::write(out, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
}

// Demangles in a child process, whose time is limited. If several children fail, somebody has probably chosen the names
// to cost time, so no more children are made.
std::optional<std::string> demangle_in_child(const char* name) {
  static std::atomic<int> children = 0;
  static std::atomic<int> failures = 0;
  int ends[2];
  if (failures >= kMostFailures || children++ >= kMostChildren || ::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const pid_t child = ::fork();
  if (child == 0) be_child(name, ends[1]);
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t got = child < 0 ? 0 : ::read(ends[0], piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  while (child > 0 && ::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!text.ends_with(kEnd)) {
    ++failures;
    return std::nullopt;
  }
  text.pop_back();
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

}  // namespace

std::optional<std::string> demangle(const char* name) {
  const std::size_t length = ::strnlen(name, kMaxNameBytes + 1);
  if (length > kMaxNameBytes) return std::nullopt;
  return bound_text({name, length}) <= kMaxBound ? demangle_here(name) : demangle_in_child(name);
}

}  // namespace forksight::symbols
