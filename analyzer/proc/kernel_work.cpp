#include "proc/kernel_work.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <string>

#include "files/dead_places.hpp"
#include "proc/descriptor_tables.hpp"
#include "proc/proc_fs.hpp"

namespace forksight::proc {
namespace {

constexpr std::string_view kAnonymous = "anon_inode:";
constexpr std::string_view kRing = "[io_uring]";

// True for the devices of drivers that write to no eventfd: memory (null, zero, random ...) and terminals.
bool is_plain(dev_t device) {
  constexpr unsigned kMemoryDevices = 1;
  constexpr unsigned kConsoles = 4;
  constexpr unsigned kTerminals = 5;
  constexpr unsigned kFirstPty = 128;
  constexpr unsigned kLastPty = 143;
  const unsigned driver = major(device);
  return driver == kMemoryDevices || driver == kConsoles || driver == kTerminals ||
         (driver >= kFirstPty && driver <= kLastPty);
}

ReadText read_maps(std::int32_t pid) {
  constexpr std::size_t kMaxMaps = 16U << 20U;
  return read_file(proc_path(find_living_thread(pid), "maps"), kMaxMaps);
}

template <class Test>
bool any_line(std::string_view text, const Test& test) {
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    if (test(text.substr(start, end - start))) return true;
    start = end + 1;
  }
  return false;
}

}  // namespace

bool is_ring_link(std::string_view link) { return link.find(kRing) != std::string_view::npos; }

bool is_writing_device(const Descriptor& one) {
  struct stat status {};
  return files::stat_living(proc_path(one.tid, "fd/" + std::to_string(one.fd)), status) == 0 &&
         S_ISCHR(status.st_mode) && !is_plain(status.st_rdev);
}

bool may_anonymous_file_write(std::string_view link) {
  if (!link.starts_with(kAnonymous)) return false;
  link.remove_prefix(kAnonymous.size());
  if (link.starts_with("bpf") || link.starts_with("[perf_event]") || link.starts_with("btf")) return false;
  constexpr std::array<std::string_view, 10> kSilent = {
      "[eventfd]", "[eventpoll]", "[timerfd]",     "[signalfd]",     "[pidfd]",
      "inotify",   "[fanotify]",  "[userfaultfd]", "seccomp notify", "[landlock-ruleset]"};
  return std::ranges::find(kSilent, link) == kSilent.end();
}

KernelWork work_of_mappings(std::string_view maps) {
  const auto names_device = [](std::string_view line) {
    constexpr std::string_view kDevices = " /dev/";
    const std::size_t at = line.find(kDevices);
    if (at == std::string_view::npos) return false;
    line.remove_prefix(at + kDevices.size());
    constexpr std::array<std::string_view, 3> kMemory = {"shm/", "zero", "hugepages"};
    return std::ranges::none_of(kMemory, [&](std::string_view name) { return line.starts_with(name); });
  };
  const auto names_writer = [&](std::string_view line) {
    const std::size_t anonymous = line.find(kAnonymous);
    return line.find("[aio]") != std::string_view::npos || names_device(line) ||
           (anonymous != std::string_view::npos && may_anonymous_file_write(line.substr(anonymous)));
  };
  const auto names_ring = [](std::string_view line) { return line.find(kRing) != std::string_view::npos; };
  return {any_line(maps, names_ring), any_line(maps, names_writer)};
}

bool may_use_ring(std::int32_t pid, DescriptorTables& tables) {
  const ReadText maps = read_maps(pid);
  return maps.outcome == ReadOutcome::kRefused || work_of_mappings(maps.text).has_ring || tables.may_have_ring(pid);
}

bool may_let_kernel_write_to_eventfd(std::int32_t pid, DescriptorTables& tables) {
  const ReadText maps = read_maps(pid);
  const KernelWork mapped = work_of_mappings(maps.text);
  return maps.outcome == ReadOutcome::kRefused || mapped.has_ring || mapped.may_write_to_eventfd ||
         tables.may_have_writer_to_eventfds(pid);
}

bool lists_memory_groups_of_version_1(std::string_view cgroups) {
  // "memory", the number of its hierarchy, and more. The number is 0 if version 2 has the memory controller, or if no
  // mounted hierarchy has it.
  constexpr std::string_view kController = "memory\t";
  return any_line(cgroups, [&](std::string_view line) {
    return line.starts_with(kController) && !line.substr(kController.size()).starts_with("0\t");
  });
}

bool is_in_memory_group_of_version_1(std::string_view cgroup) {
  // "4:cpu,memory:/path". A line of version 2 names no controller.
  return any_line(cgroup, [](std::string_view line) {
    line.remove_prefix(std::min(line.find(':'), line.size()));
    const std::string controllers = "," + std::string(line.substr(0, line.find(':', 1))).erase(0, 1) + ",";
    return controllers.find(",memory,") != std::string::npos;
  });
}

bool has_memory_groups_of_version_1() {
  if (const ReadText cgroups = read_file("/proc/cgroups"); cgroups.outcome != ReadOutcome::kGone)
    return !cgroups || lists_memory_groups_of_version_1(cgroups.text);
  // With the mount option subset=pid, /proc has no file cgroups.
  const ReadText own = read_file("/proc/self/cgroup");
  if (own.outcome == ReadOutcome::kGone) return false;  // the kernel has no control groups
  return !own || is_in_memory_group_of_version_1(own.text);
}

std::set<std::uint64_t> parse_autofs_pipes(std::string_view mounts) {
  constexpr std::string_view kField = "pipe_ino=";
  std::set<std::uint64_t> pipes;
  while (!mounts.empty()) {
    const std::string_view line = mounts.substr(0, mounts.find('\n'));
    mounts.remove_prefix(std::min(mounts.size(), line.size() + 1));
    // The file system's type follows " - ", and its options end the line.
    const auto end = line.find(" - autofs ");
    const auto at = end == std::string_view::npos ? end : line.find(kField, end);
    if (at == std::string_view::npos) continue;
    const std::string_view number = line.substr(at + kField.size());
    const auto inode = parse_decimal(number.substr(0, number.find_first_not_of("0123456789")));
    if (inode && *inode > 0) pipes.insert(static_cast<std::uint64_t>(*inode));
  }
  return pipes;
}

std::set<std::uint64_t> find_autofs_pipes() {
  constexpr std::size_t kMaxMounts = 16U << 20U;
  return parse_autofs_pipes(read_file("/proc/self/mountinfo", kMaxMounts).text);
}

}  // namespace forksight::proc
