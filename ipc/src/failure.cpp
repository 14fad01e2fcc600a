#include "failure.hpp"

#include <dirent.h>
#include <sys/resource.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace forksight::ipc {

const char* name_of(errc code) {
  switch (code) {
    case errc::timeout: return "timeout";
    case errc::closed: return "closed";
    case errc::producer_died: return "producer_died";
    case errc::no_consumer: return "no_consumer";
    case errc::used_after_fork: return "used_after_fork";
    case errc::role: return "role";
    case errc::evicted: return "evicted";
    case errc::too_large: return "too_large";
    case errc::no_space: return "no_space";
    case errc::cgroup_limit: return "cgroup_limit";
    case errc::fd_limit: return "fd_limit";
    case errc::no_participant: return "no_participant";
    case errc::abi_mismatch: return "abi_mismatch";
    case errc::corrupt: return "corrupt";
    case errc::untrusted: return "untrusted";
    case errc::not_found: return "not_found";
    case errc::bad_option: return "bad_option";
    case errc::system: return "system";
    case errc::cancelled: return "cancelled";
    case errc::undelivered: return "undelivered";
  }
  return "unknown";
}

namespace detail {
namespace {

__attribute__((format(printf, 1, 0))) std::string format_text(const char* format, va_list arguments) {
  std::array<char, 1024> text{};
  std::vsnprintf(text.data(), text.size(), format, arguments);
  return text.data();
}

}  // namespace

error failure(errc code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  error why{code, 0, 0, format_text(format, arguments)};
  va_end(arguments);
  return why;
}

error failed_call(int sys_errno, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  error why{errc::system, sys_errno, 0, format_text(format, arguments)};
  va_end(arguments);
  why.text += ": ";
  why.text += std::strerror(sys_errno);
  if (sys_errno == EMFILE || sys_errno == ENFILE || sys_errno == ETOOMANYREFS) {
    why.code = errc::fd_limit;
    // ENFILE is about all processes together, so the limit of this process does not matter.
    why.text += sys_errno == ENFILE ? " (the limit of the whole system; raise it with sysctl fs.file-max)"
                                    : " (" + descriptor_use() + "; raise it with ulimit -n)";
  } else if (sys_errno == ENOMEM || sys_errno == ENOSPC) {
    why.code = errc::no_space;
    rlimit limit{};
    if (sys_errno == ENOMEM && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
      why.text += " (RLIMIT_AS is " + std::to_string(limit.rlim_cur) +
                  "; raise it with ulimit -v, or ask for fewer or smaller buffers)";
    }
  }
  return why;
}

std::string descriptor_use() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  std::string text = "RLIMIT_NOFILE is " + std::to_string(limit.rlim_cur);
  // If no descriptor is left, the folder cannot be opened, and the descriptors cannot be counted.
  if (DIR* const folder = opendir("/proc/self/fd")) {
    std::size_t count = 0;
    while (const dirent* const entry = readdir(folder)) count += entry->d_name[0] != '.' ? 1 : 0;
    closedir(folder);
    text += ", " + std::to_string(count - 1) + " are open";
  } else {
    text += ", all of them in use";
  }
  return text;
}

}  // namespace detail
}  // namespace forksight::ipc
