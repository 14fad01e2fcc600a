// Finds the processes that could end a wait: a wait for a child, for the other end of a pipe or socket, for a file
// lock, or for a word in shared memory. If forksight does not understand a wait completely, the answer is "unknown".
// Such an answer proves nothing.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "files/budgets.hpp"
#include "proc/descriptor_tables.hpp"
#include "proc/descriptors.hpp"
#include "proc/file_locks.hpp"
#include "proc/kernel_work.hpp"
#include "proc/mappings.hpp"
#include "proc/sockets.hpp"
#include "proc/thread_sample.hpp"
#include "proc/wait_class.hpp"
#include "watch/evidence.hpp"
#include "watch/hidden_descendants.hpp"
#include "watch/tree.hpp"

namespace forksight::watch {

class WakerFinder {
 public:
  using Clock = std::chrono::steady_clock;

  // Notes the objects that forksight itself has open. forksight got them from outside of the tree, so a process outside
  // of the tree may also use them. In a container also notes the standard streams that come from outside of the
  // container.
  explicit WakerFinder(proc::DescriptorTables& tables);

  // kNotProvable: no later look can prove that the wait does not end, because any process may end it at any time, or
  // because the thread waits for a signal. kUnknown: this look proves nothing, because an unknown process may end the
  // wait now, or because something could not be read. A later look may prove more. kNeedsScan: the wakers are known
  // only after scan(). kNotAsked: the thread does not wait for a child, a descriptor, a file lock or its tracer.
  enum class Answer { kNotAsked, kKnown, kUnknown, kNotProvable, kNeedsScan };

  // Drops the data that was read for the previous look, except the descriptor tables.
  void begin_look();
  // Must be called before the waits of a tree are passed to find(), each of them once. From then on, find() counts the
  // wakers of each wait that has more than files::kFewPossibleWakers of them. After files::kMaxPossibleWakers, the
  // answer for such a wait is kUnknown.
  void begin_pass() { counted_ = 0; }
  // True if an answer of this look was kUnknown because of that limit.
  bool has_too_many() const { return has_too_many_; }
  // True if this look has examined files::kMaxPolledDescriptors. From then on, the answer for a wait for polled
  // descriptors is kUnknown.
  bool has_polled_too_many() const { return polled_ > files::kMaxPolledDescriptors; }

  // Fills `object`, `wakers`, `wakers_known` and `is_open_to_all` for a thread that waits for a child, a descriptor, a
  // file lock or its tracer. Changes nothing for other threads. Holders of descriptors come from the latest scan. An
  // object that the scan did not search for is noted for the next scan. If `thorough`, the children are those that the
  // kernel lists now, and traced processes also count. Otherwise the children are those that the tree knows.
  Answer find(std::int32_t pid, const proc::ThreadSample& thread, const Tree& tree, bool thorough, WaitFacts& facts);
  // Like find(), but for a futex word in shared memory. Does not use the latest scan.
  Answer find_shared(std::int32_t pid, const proc::SharedPlace& place, const Tree& tree, WaitFacts& facts);
  // True if the answer for this kind of wait depends on a scan.
  static bool needs_scan(proc::WaitClass kind);

  // Searches all processes for the objects that earlier calls of find() noted. On a big machine, this may take tens of
  // milliseconds.
  void scan(const Tree& tree);
  // Does the same for the processes of the tree alone. If one of them could end a wait, no other process need be
  // examined. After this scan, an answer of find() must not prove that a process is stuck, because other processes may
  // have the objects, too.
  void scan_members(const Tree& tree);
  bool is_scan_of_members_due(Clock::time_point now) const { return now >= next_scan_of_members_; }
  // True if enough time has passed since the latest scan: a multiple of the time that this scan took.
  bool is_scan_due(Clock::time_point now) const {
    return now >= next_scan_ || (has_ended_holder_ && repeated_scans_ < kMostRepeatedScans);
  }
  // Notes that a process which the latest scan found has ended. Then another scan is due at once, but only
  // kMostRepeatedScans times in a row.
  void note_ended_holder() { has_ended_holder_ = true; }

  // False if the constructor and begin_look() failed to read some object that is open outside of the tree. Then nothing
  // is proven. begin_look() tries to read these objects again.
  bool is_whole() const { return is_whole_; }
  // The processes of the tree whose descriptors the kernel refused to list at the latest scan.
  const std::set<std::int32_t>& refused() const { return refused_; }
  // True if the kernel hid descriptors at the latest scan. The process that has them may end, so a later scan may find
  // all holders.
  bool lacks_hidden_holders() const {
    return !refused_.empty() || (is_scan_of_machine_ && !hidden_descendants_.empty());
  }
  // What find_hidden_descendants() found when it was last asked, at this look or an earlier one.
  const std::vector<HiddenProcess>& hidden_descendants() const { return hidden_descendants_; }

 private:
  Answer find_children(std::int32_t pid, const proc::ThreadSample& thread, const Tree& tree, bool thorough,
                       WaitFacts& facts);
  // Adds the processes that process `pid`, which waits for any child, may adopt. `ns_depth`: as in proc::Status.
  void add_adoptable(std::int32_t pid, std::uint32_t ns_depth, const Tree& tree, WaitFacts& facts);
  Answer find_vfork_child(std::int32_t pid, const proc::ThreadSample& thread, WaitFacts& facts) const;
  Answer find_polled(std::int32_t pid, const proc::ThreadSample& thread, const Tree& tree, bool thorough,
                     WaitFacts& facts);
  Answer find_other_ends(std::int32_t pid, std::int32_t tid, std::int32_t fd, proc::WaitClass kind, const Tree& tree,
                         bool thorough, WaitFacts& facts);
  Answer find_socket_ends(std::int32_t pid, std::int32_t tid, std::int32_t fd, const proc::Object& socket,
                          proc::WaitClass kind, WaitFacts& facts);
  // True if the kernel may end a wait by a descriptor, because of what a process of the tree or a holder has asked the
  // kernel to do (proc/kernel_work.hpp). `of_eventfd`: the thread waits for an eventfd. The answers are kept for one
  // look.
  bool may_kernel_end_wait(const Tree& tree, const std::vector<proc::Holder>& holders, bool of_eventfd);
  // Adds the processes that have the epoll instance `epoll`, for which thread `tid` waits.
  Answer find_changers(std::int32_t pid, std::int32_t tid, std::int32_t epoll, WaitFacts& facts);
  // True if the descriptor of a thread and that of a holder refer to different files.
  bool is_other_file(std::int32_t tid, std::int32_t fd, const proc::Holder& holder);
  Answer find_armers(std::int32_t tid, std::int32_t fd, const proc::Object& timer, WaitFacts& facts);
  void add_receivers(WaitFacts& facts) const;
  // Counts the wakers of a wait, if they are many. Returns `answer`, or kUnknown without wakers if they are too many.
  Answer within_limit(Answer answer, WaitFacts& facts);
  Answer find_lock_holders(std::int32_t pid, const proc::ThreadSample& thread, WaitFacts& facts);
  // Adds the processes that have the file open under this path and hold a lock on it that prevents the requested one.
  // False if there is none.
  bool add_lock_holders(const std::string& path, const proc::LockRequest& request, const char* via, WaitFacts& facts);
  // Returns the path under which the process that took the lock has the file open. This path differs from the waiter's
  // path if the file has two hard links, or if a folder is mounted twice.
  std::optional<std::string> find_other_path(const proc::FileLock& lock, const proc::LockRequest& request);
  // Notes the path that find_other_path() returns for the next scan. So one scan finds the holders under both paths.
  void note_other_path(const proc::LockRequest& request);
  // True if a socket of the tree has descriptors in its queue. The answer is kept for one look.
  bool has_descriptors_on_their_way(const Tree& tree);
  // Finds the processes that have a descriptor for the shared memory, and so could map it.
  const std::vector<proc::Holder>& memory_holders(const std::string& path, const Tree& tree);
  // False if the latest scan did not search for the object. Then the object is noted for the next scan.
  bool has_scanned(const std::string& object);
  // True if the latest scan could not read the descriptors of all processes. Then nothing is known about the holders of
  // an object.
  bool lacks_holders() const { return is_scan_cut_ || lacks_hidden_holders(); }
  // Looks for hidden descendants once in each look.
  void find_hidden(const Tree& tree);
  const std::vector<proc::FileLock>& file_locks();
  const proc::Object& object_of(std::int32_t tid, std::int32_t fd);
  std::optional<proc::Peer> peer_of(std::int32_t tid, std::uint64_t inode);

  void find_outside();
  void fill_holders(const std::set<std::int32_t>& members, const std::set<std::string>& queues);

  proc::DescriptorTables& tables_;
  bool sees_all_;  // true if no process is hidden from forksight
  bool is_whole_ = false;
  // What is open outside of the tree: in forksight itself, and in processes from outside of the pid namespace. The
  // timers are not armed.
  std::set<std::string> outside_;
  std::vector<proc::Holder> outside_timers_;
  std::set<std::string> scanned_;
  std::set<std::string> unscanned_;
  std::map<std::string, std::vector<proc::Holder>> holders_;
  // Pairs of a thread's descriptor and a holder's descriptor, for which is_other_file() has found true since the scan:
  // {tid, descriptor, tid of the holder, its descriptor}.
  std::set<std::array<std::int32_t, 4>> other_files_;
  std::set<std::int32_t> refused_;
  std::vector<HiddenProcess> hidden_descendants_;
  bool is_scan_of_machine_ = false;  // the latest scan was not one of the tree alone
  bool is_scan_cut_ = false;         // the latest scan lacks descriptors, because it would have taken too long
  // Processes that could receive a descriptor that is now in the queue of a socket. That descriptor may refer to any
  // object.
  std::vector<proc::Holder> receivers_;
  static constexpr int kMostRepeatedScans = 3;
  Clock::time_point next_scan_{};
  Clock::time_point next_scan_of_members_{};
  bool has_ended_holder_ = false;  // note_ended_holder() was called after the latest scan
  int repeated_scans_ = 0;
  // The following members contain what was read for the current look. begin_look() empties them.
  std::optional<std::multimap<std::int32_t, std::int32_t>> traced_;  // find_traced()
  std::multimap<std::int32_t, std::int32_t> children_;               // the living processes of the tree, by parent
  bool has_sought_hidden_ = false;
  std::optional<std::vector<proc::FileLock>> file_locks_;
  std::optional<proc::SharedMemory> shared_;
  std::map<std::string, std::vector<proc::Holder>> memory_holders_;  // holders of shared memory, by its path
  std::map<std::uint64_t, std::optional<proc::Peer>> peers_;
  struct KernelWork {
    std::map<std::int32_t, bool> by_pid;
    std::optional<bool> of_tree;  // true if `by_pid` is true for some process of the tree
  };
  KernelWork may_use_ring_;
  KernelWork may_write_to_eventfd_;
  std::optional<bool> has_memory_groups_;                                  // has_memory_groups_of_version_1()
  std::optional<std::set<std::uint64_t>> autofs_pipes_;                    // find_autofs_pipes()
  std::map<std::pair<std::int32_t, std::int32_t>, proc::Object> objects_;  // by thread and descriptor
  std::size_t counted_ = 0;                                                // wakers that this pass has counted
  bool has_too_many_ = false;
  // polled descriptors, and comparisons of epoll instances and timers, counted for one look
  std::size_t polled_ = 0;
};

}  // namespace forksight::watch
