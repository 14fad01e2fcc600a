#include "watch/pipes.hpp"

#include <fcntl.h>

#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "watch/proc_fs.hpp"

namespace forksight::watch {
namespace {

// The access mode of a descriptor, from the octal "flags:" of its fdinfo; nullopt if it is gone.
std::optional<int> read_access_mode(std::int32_t tid, std::int32_t fd) {
  const ReadText text = read_file(proc_path(tid, "fdinfo/" + std::to_string(fd)));
  const auto field = text ? find_field(text.text, "flags") : std::nullopt;
  if (!field) return std::nullopt;
  unsigned flags = 0;
  const auto [stop, error] = std::from_chars(field->data(), field->data() + field->size(), flags, 8);
  if (error != std::errc{} || stop != field->data() + field->size()) return std::nullopt;
  return static_cast<int>(flags) & O_ACCMODE;
}

// A process whose first thread has ended shows no descriptors of its own: they are those of any other thread.
// /proc/TID works for threads too.
std::int32_t find_descriptor_owner(std::int32_t pid, ListedNumbers& fds) {
  fds = list_numbers(proc_path(pid, "fd"));
  if (fds.outcome != ReadOutcome::kOk || !fds.numbers.empty()) return pid;
  for (const std::int32_t tid : list_numbers(proc_path(pid, "task")).numbers) {
    ListedNumbers of_thread = list_numbers(proc_path(tid, "fd"));
    if (of_thread.numbers.empty()) continue;
    fds = std::move(of_thread);
    return tid;
  }
  return pid;
}

void collect_holders(std::int32_t pid, std::int32_t tid, const std::vector<std::int32_t>& fds,
                     const std::set<std::uint64_t>& inodes, std::vector<PipeHolder>& holders) {
  const std::size_t first_of_process = holders.size();
  for (const std::int32_t fd : fds) {
    const std::uint64_t inode = find_pipe(tid, fd);
    if (inode == 0 || !inodes.contains(inode)) continue;
    PipeHolder* holder = nullptr;
    for (std::size_t index = first_of_process; index < holders.size(); ++index) {
      if (holders[index].inode == inode) holder = &holders[index];
    }
    if (holder == nullptr) holder = &holders.emplace_back(PipeHolder{inode, pid, false, false});
    // A descriptor whose mode cannot be read counts as both ends: that keeps its process among the possible wakers.
    const int mode = read_access_mode(tid, fd).value_or(O_RDWR);
    if (mode != O_WRONLY) holder->reads = true;
    if (mode != O_RDONLY) holder->writes = true;
  }
}

}  // namespace

std::uint64_t find_pipe(std::int32_t tid, std::int32_t fd) {
  const auto link = read_link(proc_path(tid, "fd/" + std::to_string(fd)));
  return link ? parse_pipe_link(*link).value_or(0) : 0;
}

std::vector<PipeHolder> find_holders(const std::set<std::uint64_t>& inodes, const std::set<std::int32_t>& must_read,
                                     std::set<std::int32_t>& refused) {
  std::vector<PipeHolder> holders;
  if (inodes.empty()) return holders;
  for (const std::int32_t pid : list_numbers("/proc").numbers) {
    ListedNumbers fds;
    const std::int32_t tid = find_descriptor_owner(pid, fds);
    if (fds.outcome == ReadOutcome::kRefused && must_read.contains(pid)) refused.insert(pid);
    collect_holders(pid, tid, fds.numbers, inodes, holders);
  }
  return holders;
}

}  // namespace forksight::watch
