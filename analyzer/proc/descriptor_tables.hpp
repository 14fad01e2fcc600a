// The descriptor tables of processes, for one look at a process tree. The kernel needs some microseconds to show a
// descriptor, and a process may have a million descriptors. So each table is read once, and all parts of the look use
// what was read. The work on descriptors has a limit of time (files::kLongestDescriptorReading). After that, the
// tables are cut: they do not show that some process lacks a descriptor.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "files/budgets.hpp"
#include "proc/descriptors.hpp"
#include "proc/proc_fs.hpp"

namespace forksight::proc {

class DescriptorTables {
 public:
  explicit DescriptorTables(std::chrono::nanoseconds limit = files::kLongestDescriptorReading) : limit_(limit) {}
  DescriptorTables(const DescriptorTables&) = delete;
  DescriptorTables& operator=(const DescriptorTables&) = delete;

  // Forgets the tables, so that they are read again. The time that was used stays used.
  void forget();
  // Does the same, and allows the whole time again.
  void renew();
  // Forgets the tables only if reading them again would take little time.
  void forget_if_cheap();

  // True if the time was used up, and something was left out, since the latest call of renew().
  bool is_cut() const { return is_cut_; }

  // Reads the tables of these processes, without those that were read already.
  void read(std::span<const std::int32_t> pids);
  // Reads the tables of these processes, and then of all other processes of the machine. forksight leaves out processes
  // whose descriptors it may not read.
  void read_all(const std::set<std::int32_t>& first);
  // True if the tables of the process were read to their ends, or if the process has ended.
  bool has_whole(std::int32_t pid) const;
  // Returns those of these processes whose descriptors the kernel refused to list.
  std::set<std::int32_t> find_refused(const std::set<std::int32_t>& pids) const;

  // Finds all descriptors of these objects in the tables that were read. A descriptor that was closed since then counts
  // as open for reading and writing.
  std::vector<Holder> find_holders(const std::set<std::string>& objects);

  // Finds the UNIX sockets of these processes whose queue contains a message with descriptors. Returns names such as
  // "socket:[17]". The process that receives such a message gets the descriptors. /proc does not show which descriptors
  // these are. The function reads the tables of these processes twice: before the queues, and after them. A process may
  // give a descriptor away while the tables are read. Then the first reading shows the descriptor in the process that
  // gives, or the queue has it, or the second reading shows it in the process that receives. find_holders() returns the
  // holders of both readings. The tables of all other processes are read before the queues too.
  const std::set<std::string>& find_sockets_with_descriptors(const std::set<std::int32_t>& pids);

  // Returns the descriptors of the process whose links have a text that `is_wanted` accepts. If the tables are cut, some
  // descriptors may be missing. Reads the tables if needed.
  std::vector<Descriptor> find(std::int32_t pid, const std::function<bool(std::string_view)>& is_wanted);

  // Each of the following functions reads the tables of the process if needed, and returns true if they are cut.
  // True if a descriptor of the process is an io_uring.
  bool may_have_ring(std::int32_t pid);
  // True if a descriptor of the process may write to an eventfd: an io_uring, a device, or a file without a path that
  // is not known.
  bool may_have_writer_to_eventfds(std::int32_t pid);
  // True if a descriptor of the process is a signalfd, or if the kernel refused to list the descriptors.
  bool may_have_signalfd(std::int32_t pid);
  // True if a descriptor of the process sends a signal when it becomes ready (O_ASYNC).
  bool may_send_signals(std::int32_t pid);

 private:
  class Use;  // counts the time of a piece of work
  enum Trait : unsigned { kRing = 1, kWriter = 2, kPath = 4, kSocket = 8, kSignalfd = 16 };

  struct Text {
    std::string text;
    unsigned traits = 0;
  };
  struct Entry {
    std::int32_t fd = 0;
    std::uint32_t text = 0;  // index into texts_
  };
  struct Table {
    std::int32_t tid = 0;  // a living thread that has the table
    ReadOutcome outcome = ReadOutcome::kGone;
    unsigned traits = 0;  // of all its descriptors
    std::vector<Entry> entries;
  };
  struct Process {
    bool is_whole = false;
    std::vector<Table> tables;
  };

  bool has_time();
  void read_batch(std::span<const std::int32_t> pids);
  void read_tables(std::span<const std::int32_t> pids);
  const Process& process_of(std::int32_t pid);
  unsigned traits_of(const Process& process) const;
  std::uint32_t number_of(std::string text);
  void add_holders(std::int32_t pid, const std::vector<const std::string*>& wanted, bool wants_eventfds,
                   const std::set<std::string>& objects, std::vector<Holder>& holders);
  void add_earlier_holders(std::int32_t pid, const std::vector<const std::string*>& wanted,
                           const std::set<std::string>& objects, std::vector<Holder>& holders) const;
  void read_modes(std::span<Holder> holders);
  // Reads fdinfo of these descriptors. Calls `use` for each text, until `use` returns false. False: the time is up.
  bool for_each_fdinfo(std::span<const Descriptor> descriptors,
                       const std::function<bool(const Descriptor&, const std::string&)>& use);

  std::chrono::nanoseconds limit_;
  std::map<std::int32_t, Process> processes_;  // by pid
  std::map<std::int32_t, Process> earlier_;    // the first readings of processes that were read twice
  std::deque<Text> texts_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;  // indexes into texts_
  std::optional<std::set<std::string>> queues_;
  std::map<std::int32_t, bool> signalling_;  // the answers of may_send_signals()
  std::chrono::nanoseconds used_{};
  std::chrono::nanoseconds used_before_{};  // the part of used_ that is older than the tables
  std::chrono::nanoseconds began_{};        // the processor time when the present piece of work began
  int depth_ = 0;
  bool is_cut_ = false;
};

}  // namespace forksight::proc
