// Finds processes that share one memory, although they are not threads of one process: children of vfork(), and of
// clone() with CLONE_VM and without CLONE_THREAD.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "proc/proc_fs.hpp"
#include "proc/proc_text.hpp"

namespace forksight::proc {

enum class Sharing { kUnknown, kAlone, kShared };

// The constructor lists the processes of this machine. Processes that start later are not found. So use an object for
// one examination only.
class MemorySharers {
 public:
  // `root`: a process that did not begin with the memory of another process. Only descendants of `root` can share the
  // memory of a descendant of `root`. Not given: any process may share the memory of any other one.
  explicit MemorySharers(const std::optional<ProcessKey>& root = std::nullopt);
  // Adds to `sharers` the other processes that share the memory of process `pid`. `tid`: a living thread of this
  // process. A process that forksight has no right to compare is added, too, if it may share the memory.
  Sharing find(std::int32_t pid, std::int32_t tid, std::vector<std::int32_t>& sharers);
  // A process that find() added for process `pid` although it is not known to share the memory; 0: none.
  std::int32_t possible_sharer(std::int32_t pid) const;

 private:
  struct Process {
    std::int32_t pid = 0;
    std::int32_t tid = 0;  // a thread that had not ended when the processes were listed
  };
  using Group = std::vector<Process>;  // processes with the same memory, at least one

  // The largest size that the mapped memory of a process has ever had.
  struct Peak {
    bool is_readable = false;
    std::uint64_t kilobytes = 0;  // 0: the process has no memory
  };

  // Divides the processes into groups. With n processes and g groups, this takes about n * log2(g) calls of kcmp().
  void group();
  // Puts the process into its group. False if the kernel does not tell an order.
  bool insert(const Process& process);
  void remove_first(std::size_t group);
  // Compares the groups again. False if a group or the order of the groups is wrong now. The reason may be a process
  // that called exec() meanwhile: it has another memory, and may have led the search for a group to a wrong place.
  bool is_still_in_order();
  bool is_still_one_memory(Group& group) const;

  const std::optional<Stat>& stat_of(std::int32_t pid);  // is read once; nullopt: the process has ended
  bool may_descend_from(const ProcessKey& first, std::int32_t process);
  bool calls_exec(std::int32_t pid);
  std::optional<ProcessKey> find_first_owner(std::int32_t pid);
  bool may_be_related(std::int32_t pid, const std::optional<ProcessKey>& first, std::int32_t other);
  std::vector<Process> keep_possible(std::int32_t pid, std::int32_t tid, const std::vector<Process>& refused);
  static Peak read_peak(std::int32_t tid);
  std::optional<bool> may_have_one_peak(std::int32_t pid, std::int32_t tid, const Process& other);
  void read_peaks();

  std::optional<ProcessKey> root_;
  std::map<std::int32_t, std::int32_t> possible_sharers_;
  std::map<std::int32_t, std::optional<Stat>> stats_;
  std::vector<Process> all_;
  bool has_grouped_ = false;
  std::vector<Group> groups_;                               // sorted by the order that kcmp() tells
  std::unordered_map<std::int32_t, std::size_t> group_of_;  // indexes into `groups_`, by pid
  std::vector<Process> uncompared_;  // in no group, because the kernel refuses to compare these processes
  // The peaks of all processes, read three times, one process after the other. Empty until a peak is needed.
  std::array<std::map<std::int32_t, Peak>, 3> peaks_;
};

}  // namespace forksight::proc
