#include "proc/own_process.hpp"

#include <unistd.h>

#include <algorithm>
#include <optional>

namespace forksight::proc {
namespace {

pid_t g_guard = 0;  // 0: none
std::optional<uid_t> g_caller;

std::vector<pid_t>& noted_processes() {
  static std::vector<pid_t> noted;
  return noted;
}

}  // namespace

void set_guard(pid_t guard) { g_guard = guard; }

void note_own_process(pid_t pid) { noted_processes().push_back(pid); }

void note_caller(uid_t user) { g_caller = user; }

uid_t caller() { return g_caller.value_or(::geteuid()); }

std::vector<pid_t> own_processes() {
  std::vector<pid_t> own{::getpid()};
  if (g_guard != 0) own.push_back(g_guard);
  own.insert(own.end(), noted_processes().begin(), noted_processes().end());
  return own;
}

bool is_own_process(pid_t pid) {
  const std::vector<pid_t> own = own_processes();
  return std::find(own.begin(), own.end(), pid) != own.end();
}

}  // namespace forksight::proc
