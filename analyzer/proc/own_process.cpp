#include "proc/own_process.hpp"

#include <unistd.h>

#include <algorithm>

namespace forksight::proc {
namespace {

pid_t g_guard = 0;  // 0: none

}  // namespace

void set_guard(pid_t guard) { g_guard = guard; }

std::vector<pid_t> own_processes() {
  std::vector<pid_t> own{::getpid()};
  if (g_guard != 0) own.push_back(g_guard);
  return own;
}

bool is_own_process(pid_t pid) { return pid == ::getpid() || (pid == g_guard && g_guard != 0); }

}  // namespace forksight::proc
