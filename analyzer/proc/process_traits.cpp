#include "proc/process_traits.hpp"

#include <elf.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "proc/proc_fs.hpp"

namespace forksight::proc {

bool runs_x86_64(std::int32_t tid) {
  const int fd = ::open(proc_path(tid, "exe").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return false;
  Elf64_Ehdr header;
  const ssize_t got = ::pread(fd, &header, sizeof header, 0);
  ::close(fd);
  return got == static_cast<ssize_t>(sizeof header) && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == EM_X86_64;
}

bool has_io_uring(std::int32_t tid) {
  // An io_uring may be mapped without a descriptor, or open without being mapped.
  constexpr std::size_t kMaxMaps = 16U << 20U;
  if (read_file(proc_path(tid, "maps"), kMaxMaps).text.find("[io_uring]") != std::string::npos) return true;
  for (const std::int32_t fd : list_numbers(proc_path(tid, "fd")).numbers) {
    const auto link = read_link(proc_path(tid, "fd/" + std::to_string(fd)));
    if (link && link->find("[io_uring]") != std::string::npos) return true;
  }
  return false;
}

bool has_libc(std::int32_t tid) {
  constexpr std::size_t kMaxMaps = 16U << 20U;
  const std::string maps = read_file(proc_path(tid, "maps"), kMaxMaps).text;
  return maps.find("/libc.so.6") != std::string::npos || maps.find("/libc-2.") != std::string::npos;
}

Sharing find_sharing(std::int32_t pid, std::int32_t tid, std::vector<std::int32_t>& sharers) {
  for (const std::int32_t other : list_numbers("/proc").numbers) {
    if (other == pid) continue;
    const long order = ::syscall(SYS_kcmp, tid, other, KCMP_VM, 0, 0);
    if (order == 0) sharers.push_back(other);
    // EPERM: a process of another user; memory is not shared across the change of rights that an exec would make.
    // ESRCH: it has ended, or is a kernel thread.
    if (order < 0 && errno != EPERM && errno != ESRCH && errno != EACCES) return Sharing::kUnknown;
  }
  if (!sharers.empty()) return Sharing::kShared;
  // If kcmp is forbidden altogether, it fails for every pair: try a pair that must succeed.
  const long self = ::syscall(SYS_kcmp, tid, tid, KCMP_VM, 0, 0);
  return self == 0 ? Sharing::kAlone : Sharing::kUnknown;
}

}  // namespace forksight::proc
