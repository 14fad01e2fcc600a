#include "proc/descriptor_tables.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "files/opener.hpp"
#include "proc/batches.hpp"
#include "proc/kernel_work.hpp"
#include "proc/own_process.hpp"

namespace forksight::proc {
namespace {

constexpr std::size_t kBetweenClocks = 64;  // descriptors that are examined between two looks at the clock
// If reading the tables takes less time than this, they are read again for each purpose, so that they are new.
constexpr std::chrono::milliseconds kCheapReading{100};

std::chrono::nanoseconds read_clock(clockid_t clock) {
  timespec time{};
  if (::clock_gettime(clock, &time) != 0) return {};
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// The processor time of this thread, and of the process that opens files for it. The wall clock would also count other
// processes of a busy machine.
std::chrono::nanoseconds time_of_reading() {
  std::chrono::nanoseconds time = read_clock(CLOCK_THREAD_CPUTIME_ID);
  if (!files::has_opener()) return time;
  for (const pid_t pid : own_processes()) {
    clockid_t clock{};
    if (pid != ::getpid() && ::clock_getcpuclockid(pid, &clock) == 0) time += read_clock(clock);
  }
  return time;
}

std::string fdinfo_path(const Descriptor& one) { return proc_path(one.tid, fmt::format("fdinfo/{}", one.fd)); }
std::string path_of_link(std::int32_t tid, std::int32_t fd) { return proc_path(tid, fmt::format("fd/{}", fd)); }

// False if the thread has ended or is ending. Then it has no descriptors, or soon loses them.
bool has_files(std::int32_t tid) {
  constexpr std::uint32_t kExiting = 4;  // PF_EXITING of the kernel's sched.h
  const auto stat = read_thread_stat(tid);
  return stat && stat->state != 'Z' && stat->state != 'X' && (stat->flags & kExiting) == 0;
}

bool still_refers(const Holder& holder) {
  return holder.object.starts_with(kEventfdName) || read_link(path_of_link(holder.tid, holder.fd)) == holder.object;
}

}  // namespace

class DescriptorTables::Use {
 public:
  explicit Use(DescriptorTables& tables) : tables_(tables) {
    if (tables_.depth_++ == 0) tables_.began_ = time_of_reading();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() {
    if (--tables_.depth_ == 0) tables_.used_ += time_of_reading() - tables_.began_;
  }

 private:
  DescriptorTables& tables_;
};

bool DescriptorTables::has_time() {
  if (used_ + (time_of_reading() - began_) < limit_) return true;
  is_cut_ = true;
  return false;
}

void DescriptorTables::forget() {
  processes_.clear();
  earlier_.clear();
  numbers_.clear();
  texts_.clear();
  queues_.reset();
  signalling_.clear();
  used_before_ = used_;
}

void DescriptorTables::renew() {
  used_ = {};
  is_cut_ = false;
  forget();
}

void DescriptorTables::forget_if_cheap() {
  if (!is_cut_ && used_ - used_before_ < kCheapReading) forget();
}

std::uint32_t DescriptorTables::number_of(std::string text) {
  if (const auto known = numbers_.find(text); known != numbers_.end()) return known->second;
  unsigned traits = 0;
  if (is_ring_link(text)) traits |= kRing;
  if (may_anonymous_file_write(text)) traits |= kWriter;
  if (text.starts_with('/')) traits |= kPath;
  if (parse_socket_link(text)) traits |= kSocket;
  if (text == "anon_inode:[signalfd]") traits |= kSignalfd;
  const auto number = static_cast<std::uint32_t>(texts_.size());
  texts_.push_back({std::move(text), traits});
  numbers_.emplace(texts_.back().text, number);
  return number;
}

void DescriptorTables::read_tables(std::span<const std::int32_t> pids) {
  struct Place {
    std::int32_t pid;
    std::size_t table;
  };
  std::vector<Place> places;
  std::vector<std::string> folders;
  for (const std::int32_t pid : pids) {
    Process& process = processes_[pid];
    process = {true, {}};
    for (const std::int32_t tid : find_tables(pid)) {
      places.push_back({pid, process.tables.size()});
      process.tables.push_back({tid, ReadOutcome::kGone, 0, {}});
      folders.push_back(proc_path(tid, "fd"));
    }
  }
  std::size_t at = 0;
  read_links(folders, [this] { return has_time(); }, [&](ListedLinks listed) {
    Process& process = processes_.at(places[at].pid);
    Table& table = process.tables[places[at++].table];
    process.is_whole = process.is_whole && !listed.is_cut;
    const bool is_of_ended = listed.outcome == ReadOutcome::kRefused && has_ended(places[at - 1].pid);
    table.outcome = is_of_ended ? ReadOutcome::kGone : listed.outcome;
    table.entries.reserve(listed.links.size());
    for (Link& link : listed.links) {
      const std::uint32_t text = number_of(std::move(link.text));
      table.traits |= texts_[text].traits;
      table.entries.push_back({link.number, text});
    }
  });
}

// If the thread by which a table is read ends meanwhile, its table seems to be gone or to lack descriptors, although
// other threads of the process may still have the table. Then the tables of the process are read again.
void DescriptorTables::read_batch(std::span<const std::int32_t> pids) {
  constexpr int kMostReadings = 4;
  const auto may_lack = [](const Table& table) {
    return table.outcome != ReadOutcome::kRefused && !has_files(table.tid);
  };
  const auto lacks_table = [&](std::int32_t pid) {
    return std::ranges::any_of(processes_.at(pid).tables, may_lack) && !has_ended(pid);
  };
  std::vector<std::int32_t> left(pids.begin(), pids.end());
  for (int reading = 0; reading < kMostReadings && !left.empty(); ++reading) {
    read_tables(left);
    std::erase_if(left, [&](std::int32_t pid) { return !lacks_table(pid); });
  }
  for (const std::int32_t pid : left) {
    for (Table& table : processes_.at(pid).tables) {
      if (may_lack(table)) table.outcome = ReadOutcome::kRefused;
    }
  }
}

void DescriptorTables::read(std::span<const std::int32_t> pids) {
  const Use use(*this);
  std::vector<std::int32_t> unread;
  std::ranges::copy_if(pids, std::back_inserter(unread), [&](std::int32_t pid) { return !processes_.contains(pid); });
  for (const auto some : in_batches(std::span(std::as_const(unread)), kReadTogether)) {
    if (has_time()) {
      read_batch(some);
    } else {
      for (const std::int32_t pid : some) processes_[pid] = {};
    }
  }
}

void DescriptorTables::read_all(const std::set<std::int32_t>& first) {
  read(std::vector<std::int32_t>(first.begin(), first.end()));
  read(list_numbers("/proc").numbers);
}

bool DescriptorTables::has_whole(std::int32_t pid) const {
  const auto known = processes_.find(pid);
  return known != processes_.end() && known->second.is_whole;
}

std::set<std::int32_t> DescriptorTables::find_refused(const std::set<std::int32_t>& pids) const {
  std::set<std::int32_t> refused;
  const auto is_refused = [](const Table& table) { return table.outcome == ReadOutcome::kRefused; };
  for (const auto* const readings : {&processes_, &earlier_}) {
    for (const auto& [pid, process] : *readings) {
      if (pids.contains(pid) && std::ranges::any_of(process.tables, is_refused)) refused.insert(pid);
    }
  }
  return refused;
}

const DescriptorTables::Process& DescriptorTables::process_of(std::int32_t pid) {
  read(std::span(&pid, 1));
  return processes_.at(pid);
}

unsigned DescriptorTables::traits_of(const Process& process) const {
  unsigned traits = 0;
  for (const Table& table : process.tables) traits |= table.traits;
  return traits;
}

bool DescriptorTables::for_each_fdinfo(std::span<const Descriptor> descriptors,
                                       const std::function<bool(const Descriptor&, const std::string&)>& use) {
  for (const auto some : in_batches(descriptors, kBetweenClocks)) {
    if (!has_time()) return false;
    std::vector<std::string> paths;
    for (const Descriptor& one : some) paths.push_back(fdinfo_path(one));
    const std::vector<ReadText> texts = read_files(paths);
    for (std::size_t at = 0; at < some.size(); ++at) {
      if (!use(some[at], texts[at].text)) return true;
    }
  }
  return true;
}

// Reads whether the descriptors are open for reading and for writing. The rights of the link in /proc/PID/fd show it. To
// read the flags in fdinfo takes four times as long.
void DescriptorTables::read_modes(std::span<Holder> holders) {
  for (const auto some : in_batches(holders, kBetweenClocks)) {
    // A descriptor whose mode cannot be read counts as open for reading and writing. So its process stays among the
    // possible wakers.
    if (!has_time()) return;
    std::vector<std::string> paths;
    for (const Holder& holder : some) paths.push_back(path_of_link(holder.tid, holder.fd));
    const std::vector<unsigned> modes = read_link_modes(paths);
    for (std::size_t at = 0; at < some.size(); ++at) {
      const bool is_known = S_ISLNK(modes[at]) && (modes[at] & (S_IRUSR | S_IWUSR)) != 0;
      // If the process has used the number for another file since, the mode is that of the other file.
      if (!is_known || !still_refers(some[at])) continue;
      some[at].reads = (modes[at] & S_IRUSR) != 0;
      some[at].writes = (modes[at] & S_IWUSR) != 0;
    }
  }
}

void DescriptorTables::add_holders(std::int32_t pid, const std::vector<const std::string*>& wanted,
                                   bool wants_eventfds, const std::set<std::string>& objects,
                                   std::vector<Holder>& holders) {
  const Process& process = processes_.at(pid);
  const auto eventfd = numbers_.find(kEventfdLink);
  const std::size_t first = holders.size();
  std::vector<Descriptor> eventfds;
  for (const Table& table : process.tables) {
    for (const Entry& entry : table.entries) {
      if (wants_eventfds && eventfd != numbers_.end() && entry.text == eventfd->second) {
        eventfds.push_back({table.tid, entry.fd});
      } else if (const std::string* const object = wanted[entry.text]) {
        holders.push_back({*object, pid, table.tid, entry.fd, true, true});
      }
    }
  }
  for_each_fdinfo(eventfds, [&](const Descriptor& one, const std::string& fdinfo) {
    std::string name = name_eventfd(fdinfo);
    if (objects.contains(name)) holders.push_back({std::move(name), pid, one.tid, one.fd, true, true});
    return true;
  });
  if (process.tables.size() < 2) return;
  // If a thread gets a descriptor table of its own, the new table is at first a copy of the old one. A descriptor that is
  // only such a copy is left out.
  std::map<std::int32_t, std::vector<Holder>> kept;  // by descriptor
  std::vector<Holder> found;
  for (std::size_t at = first; at < holders.size(); ++at) {
    Holder& one = holders[at];
    std::vector<Holder>& others = kept[one.fd];
    const auto is_copy = [&](const Holder& other) {
      return other.object == one.object && is_same_file(other.tid, one.fd, one.tid, one.fd).value_or(false);
    };
    if (std::ranges::any_of(others, is_copy)) continue;
    others.push_back(one);
    found.push_back(std::move(one));
  }
  holders.resize(first);
  std::ranges::move(found, std::back_inserter(holders));
}

// Adds the descriptors that only the first reading of a process shows. They have no number any more.
void DescriptorTables::add_earlier_holders(std::int32_t pid, const std::vector<const std::string*>& wanted,
                                           const std::set<std::string>& objects, std::vector<Holder>& holders) const {
  const auto eventfd = numbers_.find(kEventfdLink);
  const auto is_eventfd = [&](const Entry& entry) {
    return eventfd != numbers_.end() && entry.text == eventfd->second;
  };
  const auto now = processes_.find(pid);
  const auto is_still_open = [&](std::int32_t tid, const Entry& entry) {
    if (now == processes_.end()) return false;
    const auto table = std::ranges::find(now->second.tables, tid, &Table::tid);
    if (table == now->second.tables.end()) return false;
    const auto same = std::ranges::lower_bound(table->entries, entry.fd, {}, &Entry::fd);
    return same != table->entries.end() && same->fd == entry.fd && same->text == entry.text;
  };
  for (const Table& table : earlier_.at(pid).tables) {
    for (const Entry& entry : table.entries) {
      const std::string* const object = wanted[entry.text];
      if ((object == nullptr && !is_eventfd(entry)) || is_still_open(table.tid, entry)) continue;
      if (object != nullptr) {
        holders.push_back({*object, pid, table.tid, -1, true, true});
        continue;
      }
      // A closed descriptor no longer shows which eventfd it was. So it may have been any of them.
      for (auto one = objects.lower_bound(std::string(kEventfdName)); one != objects.end(); ++one) {
        if (!one->starts_with(kEventfdName)) break;
        holders.push_back({*one, pid, table.tid, -1, true, true});
      }
    }
  }
}

std::vector<Holder> DescriptorTables::find_holders(const std::set<std::string>& objects) {
  std::vector<Holder> holders;
  if (objects.empty()) return holders;
  const Use use(*this);
  std::vector<const std::string*> wanted(texts_.size());  // by text
  for (const std::string& object : objects) {
    if (const auto number = numbers_.find(object); number != numbers_.end()) wanted[number->second] = &object;
  }
  const auto first_eventfd = objects.lower_bound(std::string(kEventfdName));
  const bool wants_eventfds = first_eventfd != objects.end() && first_eventfd->starts_with(kEventfdName);
  for (const auto& [pid, process] : processes_) add_holders(pid, wanted, wants_eventfds, objects, holders);
  read_modes(holders);
  for (const auto& [pid, process] : earlier_) add_earlier_holders(pid, wanted, objects, holders);
  return holders;
}

const std::set<std::string>& DescriptorTables::find_sockets_with_descriptors(const std::set<std::int32_t>& pids) {
  if (queues_) return *queues_;
  const Use use(*this);
  read_all(pids);
  queues_.emplace();
  // All descriptors of a socket show the same queue.
  std::set<std::uint32_t> known;
  std::vector<Descriptor> sockets;
  std::vector<std::uint32_t> texts;
  for (const std::int32_t pid : pids) {
    for (const Table& table : processes_.at(pid).tables) {
      if ((table.traits & kSocket) == 0) continue;
      for (const Entry& entry : table.entries) {
        if ((texts_[entry.text].traits & kSocket) == 0 || !known.insert(entry.text).second) continue;
        sockets.push_back({table.tid, entry.fd});
        texts.push_back(entry.text);
      }
    }
  }
  std::size_t at = 0;
  for_each_fdinfo(sockets, [&](const Descriptor&, const std::string& fdinfo) {
    const auto waiting = find_field(fdinfo, "scm_fds");
    if (waiting && *waiting != "0") queues_->insert(texts_[texts[at]].text);
    ++at;
    return true;
  });
  for (const std::int32_t pid : pids) earlier_.insert(processes_.extract(pid));
  read(std::vector<std::int32_t>(pids.begin(), pids.end()));
  // If the time was over before the second reading, the first reading still shows what the process itself can do.
  for (const auto& [pid, process] : earlier_) {
    if (process.is_whole && !processes_.at(pid).is_whole) processes_.at(pid) = process;
  }
  return *queues_;
}

std::vector<Descriptor> DescriptorTables::find(std::int32_t pid,
                                               const std::function<bool(std::string_view)>& is_wanted) {
  std::vector<Descriptor> found;
  for (const Table& table : process_of(pid).tables) {
    for (const Entry& entry : table.entries) {
      if (is_wanted(texts_[entry.text].text)) found.push_back({table.tid, entry.fd});
    }
  }
  return found;
}

bool DescriptorTables::may_have_signalfd(std::int32_t pid) {
  const Process& process = process_of(pid);
  const auto is_refused = [](const Table& table) { return table.outcome == ReadOutcome::kRefused; };
  return !process.is_whole || (traits_of(process) & kSignalfd) != 0 || std::ranges::any_of(process.tables, is_refused);
}

bool DescriptorTables::may_have_ring(std::int32_t pid) {
  const Process& process = process_of(pid);
  return !process.is_whole || (traits_of(process) & kRing) != 0;
}

bool DescriptorTables::may_have_writer_to_eventfds(std::int32_t pid) {
  const Use use(*this);
  const Process& process = process_of(pid);
  if (!process.is_whole || (traits_of(process) & (kRing | kWriter)) != 0) return true;
  std::size_t count = 0;
  for (const Table& table : process.tables) {
    if ((table.traits & kPath) == 0) continue;
    for (const Entry& entry : table.entries) {
      if ((texts_[entry.text].traits & kPath) == 0) continue;
      if (count++ % kBetweenClocks == 0 && !has_time()) return true;
      if (is_writing_device({table.tid, entry.fd})) return true;
    }
  }
  return false;
}

bool DescriptorTables::may_send_signals(std::int32_t pid) {
  const Use use(*this);
  if (const auto known = signalling_.find(pid); known != signalling_.end()) return known->second;
  const Process& process = process_of(pid);
  bool may = !process.is_whole;
  std::vector<Descriptor> all;
  for (const Table& table : process.tables) {
    for (const Entry& entry : table.entries) all.push_back({table.tid, entry.fd});
  }
  if (!may) {
    const bool is_done = for_each_fdinfo(all, [&](const Descriptor&, const std::string& fdinfo) {
      may = is_signalling(fdinfo);
      return !may;
    });
    may = may || !is_done;
  }
  return signalling_[pid] = may;
}

}  // namespace forksight::proc
