#include "proc/process_traits.hpp"

#include <elf.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <sstream>
#include <string>
#include <utility>

#include "files/dead_places.hpp"
#include "files/open_file.hpp"
#include "proc/descriptors.hpp"
#include "proc/proc_fs.hpp"
#include "proc/proc_text.hpp"

namespace forksight::proc {

std::optional<bool> runs_x86_64(std::int32_t tid) {
  const std::string path = proc_path(tid, "exe");
  const files::Descriptor program = files::open_regular(path);
  Elf64_Ehdr header;
  const bool is_read =
      program && files::read_at(program.get(), 0, std::as_writable_bytes(std::span(&header, 1))) == sizeof header;
  if (!is_read) {
    // If the file cannot be read, the mappings decide: only a 64-bit program has memory above 4 GiB.
    const std::vector<Mapping> mappings = read_mappings(tid);
    if (mappings.empty()) return std::nullopt;
    return std::ranges::any_of(mappings, [](const Mapping& one) { return one.start >> 32U != 0; });
  }
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_machine == EM_X86_64;
}

files::Owner owner_of(std::int32_t tid) {
  const std::string status = read_file(proc_path(tid, "status")).text;
  const auto numbers = [&](std::string_view name) {
    std::vector<std::uint32_t> found;
    std::istringstream words(std::string(find_field(status, name).value_or("")));
    for (std::uint32_t number = 0; words >> number;) found.push_back(number);
    return found;
  };
  // The real, effective, saved and file system id. The kernel compares the last one.
  const std::vector<std::uint32_t> uids = numbers("Uid");
  const std::vector<std::uint32_t> gids = numbers("Gid");
  files::Owner owner;
  if (uids.size() != 4 || gids.size() != 4) return owner;
  owner.uid = uids.back();
  owner.gid = gids.back();
  owner.groups = numbers("Groups");
  return owner;
}

bool has_io_uring(std::int32_t tid, const std::vector<Mapping>& mappings) {
  // An io_uring may be mapped while no descriptor is open, or open while it is not mapped.
  const auto is_ring = [](const Mapping& one) { return one.path.find("[io_uring]") != std::string::npos; };
  if (std::ranges::any_of(mappings, is_ring)) return true;
  return std::ranges::any_of(
      list_links(tid), [](const DescriptorLink& one) { return one.text.find("[io_uring]") != std::string::npos; });
}

bool has_libc(const std::vector<Mapping>& mappings) {
  return std::ranges::any_of(mappings, [](const Mapping& one) {
    return one.path.find("/libc.so.6") != std::string::npos || one.path.find("/libc-2.") != std::string::npos;
  });
}

// /proc shows the peak to every user.
MemorySharers::Peak MemorySharers::read_peak(std::int32_t tid) {
  const ReadText status = read_file(proc_path(tid, "status"));
  if (!status) return {status.outcome == ReadOutcome::kGone, 0};
  std::string_view field = find_field(status.text, "VmPeak").value_or("0");
  field = field.substr(0, field.find(' '));
  return {true, static_cast<std::uint64_t>(parse_decimal(field).value_or(0))};
}

void MemorySharers::read_peaks() {
  for (std::map<std::int32_t, Peak>& peaks : peaks_) {
    for (const std::int32_t pid : all_) peaks.emplace(pid, read_peak(pid));
  }
}

// For two processes whose memory the kernel refuses to compare: false if their peaks show that they do not share it.
// The peak belongs to the memory and never shrinks. So if two processes share their memory, the peak of one of them is
// at least the earlier peak of the other one, and at most its later peak. nullopt: a peak cannot be read.
std::optional<bool> MemorySharers::may_share(std::int32_t pid, std::int32_t tid, std::int32_t other) {
  if (peaks_.front().empty()) read_peaks();
  Peak before;
  Peak peak;
  Peak after;
  if (tid == pid && peaks_.front().contains(pid)) {
    // The first reading of all processes was over when the second one began.
    before = peaks_[0].at(pid);
    peak = peaks_[1].at(other);
    after = peaks_[2].at(pid);
  } else {
    before = read_peak(tid);
    peak = read_peak(other);
    after = read_peak(tid);
  }
  if (!peak.is_readable || before.kilobytes == 0 || after.kilobytes == 0) return std::nullopt;
  return before.kilobytes <= peak.kilobytes && peak.kilobytes <= after.kilobytes;
}

MemorySharers::MemorySharers() {
  for (const std::int32_t pid : list_numbers("/proc").numbers) {
    char name = 0;
    // Leaves out kernel threads, which have no memory and no program. A first thread that has ended no longer has them.
    const bool has_no_program = ::readlink(proc_path(pid, "exe").c_str(), &name, 1) < 0 && errno == ENOENT;
    if (!has_no_program) all_.push_back(pid);
  }
}

Sharing MemorySharers::find(std::int32_t pid, std::int32_t tid, std::vector<std::int32_t>& sharers) {
  std::vector<std::int32_t> found;
  bool is_hidden = false;  // for some process it is not known whether it shares the memory
  for (const std::int32_t other : all_) {
    if (other == pid) continue;
    // An earlier call compared the other process with the first thread of this process. If that thread has ended (tid
    // != pid), it had no memory, and the comparison is worthless.
    const auto known = tid == pid ? found_.find(other) : found_.end();
    if (known != found_.end()) {
      if (std::ranges::find(known->second, pid) != known->second.end()) found.push_back(other);
      continue;
    }
    const long order = ::syscall(SYS_kcmp, tid, other, KCMP_VM, 0, 0);
    if (order == 0) found.push_back(other);
    // EPERM: the other process has other rights. It may share the memory and have changed its rights later. ESRCH: the
    // other process has ended, or is a kernel thread.
    if (order < 0 && errno != EPERM && errno != ESRCH && errno != EACCES) return Sharing::kUnknown;
    if (order < 0 && errno != ESRCH) {
      const auto perhaps = may_share(pid, tid, other);
      is_hidden = is_hidden || !perhaps;
      if (perhaps == true) found.push_back(other);
    }
  }
  sharers.insert(sharers.end(), found.begin(), found.end());
  // If kcmp is forbidden, or the thread has ended, kcmp fails for every pair. So this compares the thread with itself,
  // which must succeed.
  const bool is_known = ::syscall(SYS_kcmp, tid, tid, KCMP_VM, 0, 0) == 0;
  if (!is_known || (is_hidden && found.empty())) return Sharing::kUnknown;
  const Sharing answer = found.empty() ? Sharing::kAlone : Sharing::kShared;
  found_.insert_or_assign(pid, std::move(found));
  return answer;
}

}  // namespace forksight::proc
