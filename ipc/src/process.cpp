#include "process.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include "descriptor.hpp"

namespace forksight::ipc::detail {
namespace {

// True if /proc shows the pid namespace of this process. In a new pid namespace, /proc shows the old namespace until it
// is mounted again. Until then, the pids in /proc belong to other processes.
bool is_own_proc() {
  std::array<char, 16> text{};
  const ssize_t size = readlink("/proc/self", text.data(), text.size() - 1);
  return size > 0 && std::strtol(text.data(), nullptr, 10) == getpid();
}

// The text after the name in /proc/PID/stat; empty: it cannot be read. The name may contain spaces and brackets, so the
// last ")" ends it.
std::string after_name(std::uint32_t pid) {
  if (!is_own_proc()) return {};
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%u/stat", pid);
  const descriptor file(open(path.data(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  std::array<char, 1024> text{};
  const ssize_t got = read(file.get(), text.data(), text.size());
  if (got <= 0) return {};
  const std::string_view all(text.data(), static_cast<std::size_t>(got));
  const std::size_t end = all.rfind(')');
  return end == std::string_view::npos || end + 2 >= all.size() ? std::string() : std::string(all.substr(end + 2));
}

std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

char state_of(std::uint32_t pid) {
  const std::string text = after_name(pid);
  return text.empty() ? '\0' : text.front();
}

bool seems_to_have_ended(std::uint32_t pid) {
  if (!is_own_proc()) return false;
  const char state = state_of(pid);
  return state == '\0' || state == 'Z' || state == 'X';
}

std::uint64_t own_pid_namespace() {
  struct stat about {};
  return stat("/proc/self/ns/pid", &about) == 0 ? about.st_ino : 0;
}

std::string own_name() {
  std::array<char, 16> name{};
  return prctl(PR_GET_NAME, name.data()) == 0 ? std::string(name.data()) : std::string();
}

std::uint64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }
std::uint64_t coarse_ns() { return clock_ns(CLOCK_MONOTONIC_COARSE); }

unsigned usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<unsigned>(CPU_COUNT(&set)) : 1;
}

}  // namespace forksight::ipc::detail
