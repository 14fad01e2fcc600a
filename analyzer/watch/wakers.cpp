#include "watch/wakers.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "files/budgets.hpp"
#include "files/dead_places.hpp"
#include "proc/futex_word.hpp"
#include "proc/namespaces.hpp"
#include "proc/own_process.hpp"
#include "proc/poll_set.hpp"
#include "proc/proc_fs.hpp"
#include "proc/process_memory.hpp"
#include "proc/sockets.hpp"
#include "proc/thread_sample.hpp"
#include "watch/cost.hpp"

namespace forksight::watch {
namespace {

using Answer = WakerFinder::Answer;

constexpr std::string_view kAnonymousMemory = "/dev/zero (deleted)";
// Scans of the machine, and scans of the tree alone, take at most these shares of the time: 1/250 and 1/100.
constexpr int kScanShare = 250;
constexpr int kScanShareOfMembers = 100;

Answer known_if_any(const WaitFacts& facts) {
  // If no process could end the wait, the call should have returned. For example, read() returns at end of file if no
  // writer is left, and write() fails with EPIPE if no reader is left. If nobody holds a lock, the kernel gives it to
  // the caller. If the thread waits nevertheless, forksight does not understand its wait.
  return facts.wakers.empty() ? Answer::kUnknown : Answer::kKnown;
}

std::optional<proc::LockRequest> read_request(const proc::ThreadSample& thread, std::int32_t fd, std::string& path) {
  const std::string link = proc::proc_path(thread.tid, fmt::format("fd/{}", fd));
  struct stat status {};
  auto target = proc::read_link(link);
  if (!target || files::stat_living(link, status) != 0) return std::nullopt;
  path = std::move(*target);
  proc::LockRequest request;
  request.family = thread.call.number == SYS_flock ? proc::LockFamily::kFlock : proc::LockFamily::kPosix;
  request.major = major(status.st_dev);
  request.minor = minor(status.st_dev);
  request.inode = status.st_ino;
  request.writes = true;
  if (request.family == proc::LockFamily::kFlock) {
    constexpr std::uint64_t kShared = 1;  // LOCK_SH
    request.writes = (thread.call.args[1] & kShared) == 0;
    return request;
  }
  struct flock wanted {};
  if (!proc::ProcessMemory(thread.tid).read(thread.call.args[2], std::as_writable_bytes(std::span(&wanted, 1))))
    return std::nullopt;
  request.writes = wanted.l_type == F_WRLCK;
  // If the range is relative to a position that may have moved since, or goes backwards, this function takes the whole
  // file as the range. So no holder of a lock is missed.
  if (wanted.l_whence != SEEK_SET || wanted.l_start < 0 || wanted.l_len < 0) return request;
  request.start = static_cast<std::uint64_t>(wanted.l_start);
  if (wanted.l_len > 0) request.end = request.start + static_cast<std::uint64_t>(wanted.l_len) - 1;
  return request;
}

// True if the call asks for a lock that belongs to the open file. Such a call can also wait for a lock that its own
// process holds.
bool is_of_open_file(const proc::ThreadSample& thread) {
  return thread.call.number == SYS_fcntl && thread.call.args[1] == F_OFD_SETLKW;
}

std::set<std::int32_t> list_living(const Tree& tree) {
  std::set<std::int32_t> pids;
  for (const auto& [pid, member] : tree.living()) {
    if (!member.has_ended) pids.insert(pid);
  }
  return pids;
}

bool has_conflict(std::string_view fdinfo, const proc::LockRequest& request) {
  const std::vector<proc::FileLock> held = proc::parse_held_locks(fdinfo);
  return std::ranges::any_of(held, [&](const proc::FileLock& one) { return proc::conflicts_with(one, request); });
}

bool covers(const proc::FileLock& held, const proc::LockRequest& request) {
  return held.writes && held.start <= request.start && request.end <= held.end;
}

}  // namespace

WakerFinder::WakerFinder(proc::DescriptorTables& tables)
    : tables_(tables), sees_all_(proc::is_in_initial_pid_namespace()) {
  find_outside();
}

void WakerFinder::find_outside() {
  const std::uint64_t failures = proc::count_failures();
  outside_timers_.clear();
  const auto add = [&](std::int32_t pid, std::int32_t fd) {
    proc::Object object = proc::find_object(pid, fd);
    switch (object.kind) {
      case proc::ObjectKind::kPipe:
      case proc::ObjectKind::kSocket:
      case proc::ObjectKind::kEventfd:
      case proc::ObjectKind::kFifo: outside_.insert(std::move(object.name)); break;
      case proc::ObjectKind::kTimerfd: outside_timers_.push_back({std::move(object.name), pid, pid, fd}); break;
      // All pidfds have one name, and so have all epoll instances.
      case proc::ObjectKind::kOther:
      case proc::ObjectKind::kEpoll:
      case proc::ObjectKind::kProcess: break;
    }
  };
  for (const pid_t own : proc::own_processes()) {
    for (const std::int32_t fd : proc::list_numbers(proc::proc_path(own, "fd")).numbers) add(own, fd);
  }
  // A process whose parent is not visible was started from outside of this pid namespace. Its standard streams also
  // come from outside of this namespace.
  if (!sees_all_) {
    for (const std::int32_t pid : proc::list_numbers("/proc").numbers) {
      const auto stat = proc::read_stat(pid);
      if (!stat || stat->ppid != 0) continue;
      for (std::int32_t fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) add(pid, fd);
    }
  }
  is_whole_ = proc::count_failures() == failures;
}

void WakerFinder::begin_look() {
  if (!is_whole_) find_outside();
  begin_pass();
  has_too_many_ = false;
  has_sought_hidden_ = false;
  traced_.reset();
  children_.clear();
  file_locks_.reset();
  shared_.reset();
  memory_holders_.clear();
  peers_.clear();
  may_use_ring_ = {};
  may_write_to_eventfd_ = {};
  has_memory_groups_.reset();
  autofs_pipes_.reset();
  objects_.clear();
  polled_ = 0;
}

bool WakerFinder::needs_scan(proc::WaitClass kind) {
  return kind == proc::WaitClass::kRead || kind == proc::WaitClass::kWrite || kind == proc::WaitClass::kPoll ||
         kind == proc::WaitClass::kFileLock;
}

Answer WakerFinder::find(std::int32_t pid, const proc::ThreadSample& thread, const Tree& tree, bool thorough,
                         WaitFacts& facts) {
  const proc::WaitTarget target = proc::classify(thread);
  Answer answer = Answer::kNotAsked;
  switch (target.kind) {
    case proc::WaitClass::kChild: answer = find_children(pid, thread, tree, thorough, facts); break;
    case proc::WaitClass::kVfork: answer = find_vfork_child(pid, thread, facts); break;
    case proc::WaitClass::kRead:
    case proc::WaitClass::kWrite:
      answer = find_other_ends(pid, thread.tid, target.fd, target.kind, tree, thorough, facts);
      break;
    case proc::WaitClass::kPoll: answer = find_polled(pid, thread, tree, thorough, facts); break;
    case proc::WaitClass::kFileLock: answer = find_lock_holders(pid, thread, facts); break;
    case proc::WaitClass::kTraced:
      facts.wakers = {{thread.status.tracer, "ptrace"}};
      answer = Answer::kKnown;
      break;
    default: return answer;
  }
  answer = within_limit(answer, facts);
  facts.wakers_known = answer == Answer::kKnown;
  facts.is_open_to_all = answer == Answer::kNotProvable;
  return answer;
}

Answer WakerFinder::within_limit(Answer answer, WaitFacts& facts) {
  // Short lists need no limit, because all of them together grow only linearly with the number of waits. So a crowd at
  // one pipe does not hide a hang of a process that shares nothing with the crowd.
  if (facts.wakers.size() <= files::kFewPossibleWakers) return answer;
  counted_ += facts.wakers.size();
  if (counted_ <= files::kMaxPossibleWakers) return answer;
  facts.wakers.clear();
  has_too_many_ = true;
  return answer == Answer::kKnown ? Answer::kUnknown : answer;
}

Answer WakerFinder::find_children(std::int32_t pid, const proc::ThreadSample& thread, const Tree& tree, bool thorough,
                                  WaitFacts& facts) {
  const proc::WaitTarget target = proc::classify(thread);
  std::int64_t child = target.child;
  if (target.pidfd >= 0) {
    const auto resolved = proc::resolve_pidfd(thread.tid, target.pidfd);
    if (!resolved) return Answer::kUnknown;
    child = *resolved;
  }
  // The pid that the process passed to the call belongs to the pid namespace of the process. So the children are
  // compared by their pids in that namespace.
  const std::uint32_t depth = target.child > 0 ? thread.status.ns_depth : 1;
  if (child > 0 && depth <= 1) {
    facts.wakers.push_back({static_cast<std::int32_t>(child), "wait4"});
    return Answer::kKnown;
  }
  const bool is_one = child > 0;
  const auto add = [&](std::int32_t any) {
    if (!is_one || proc::is_called(any, static_cast<std::int32_t>(child), depth))
      facts.wakers.push_back({any, "wait4"});
  };
  if (thorough || is_one) {
    for (const std::int32_t any : proc::read_children(pid)) add(any);
    // A tracer also waits for the processes that it traces, whoever their parent is.
    if (!traced_) traced_ = find_traced(tree);
    for (auto [at, end] = traced_->equal_range(pid); at != end; ++at) add(at->second);
  } else {
    for (const auto& [other, member] : tree.living()) {
      if (member.ppid == pid) add(other);
    }
  }
  const Answer answer = known_if_any(facts);
  if (!is_one) add_adoptable(pid, thread.status.ns_depth, tree, facts);
  return answer;
}

// No file of /proc shows whether a process adopts its descendants. So every process that waits for any child may do so.
void WakerFinder::add_adoptable(std::int32_t pid, std::uint32_t ns_depth, const Tree& tree, WaitFacts& facts) {
  if (children_.empty()) {
    for (const auto& [other, member] : tree.living()) {
      if (!member.has_ended) children_.emplace(member.ppid, other);
    }
  }
  std::vector<std::int32_t> open;
  const auto add_children = [&](std::int32_t of) {
    for (auto [at, end] = children_.equal_range(of); at != end; ++at) open.push_back(at->second);
  };
  add_children(pid);
  const std::size_t children = open.size();
  for (std::size_t at = 0; at < open.size() && open.size() - children <= files::kFewPossibleWakers; ++at) {
    add_children(open[at]);
  }
  // In a large tree the number of pairs would grow with the square of the number of processes.
  if (open.size() - children > files::kFewPossibleWakers) return;
  const std::set<std::int32_t> own(open.begin(), open.end());
  for (std::size_t at = children; at < open.size(); ++at) facts.wakers.push_back({open[at], model::kViaAdoption});
  // The first process of a pid namespace also adopts processes that entered the namespace from outside (setns()).
  if (ns_depth <= 1 || !proc::is_called(pid, 1, ns_depth)) return;
  std::size_t more = 0;
  for (const auto& [other, member] : tree.living()) {
    const bool is_new = other != pid && !member.has_ended && !own.contains(other);
    if (!is_new || ++more > files::kFewPossibleWakers) continue;
    if (proc::are_in_namespace_of(pid, {other})) facts.wakers.push_back({other, model::kViaAdoption});
  }
}

Answer WakerFinder::find_vfork_child(std::int32_t pid, const proc::ThreadSample& thread, WaitFacts& facts) const {
  for (const std::int32_t child :
       proc::parse_pids(proc::read_file(proc::task_path(pid, thread.tid, "children")).text)) {
    facts.wakers.push_back({child, "vfork"});
  }
  return known_if_any(facts);
}

bool WakerFinder::has_scanned(const std::string& object) {
  if (scanned_.contains(object)) return true;
  unscanned_.insert(object);
  return false;
}

Answer WakerFinder::find_polled(std::int32_t pid, const proc::ThreadSample& thread, const Tree& tree, bool thorough,
                                WaitFacts& facts) {
  // Each descriptor costs a read in /proc. If one look at the tree has examined too many descriptors, this look proves
  // nothing about further waits.
  if (has_polled_too_many()) return Answer::kUnknown;
  const auto fds = proc::read_poll_set(thread);
  if (!fds) return Answer::kUnknown;
  polled_ += fds->size();
  if (has_polled_too_many()) return Answer::kUnknown;
  // If the call waits for no descriptor, it lasts, like pause(), until a signal ends the call or the process. The
  // program intends this wait, so the wait is no hang.
  if (fds->empty()) return Answer::kNotProvable;
  Answer of_all = Answer::kKnown;
  for (const std::int32_t fd : *fds) {
    const Answer answer = find_other_ends(pid, thread.tid, fd, proc::WaitClass::kPoll, tree, thorough, facts);
    // The remaining descriptors are also looked up, so that a single scan searches for all of them.
    if (answer == Answer::kNeedsScan) {
      of_all = answer;
    } else if (answer != Answer::kKnown) {
      return answer;
    }
    if (facts.wakers.size() > files::kMaxPolledDescriptors) return Answer::kUnknown;
  }
  const Answer of_instance = proc::is_epoll_wait(thread.call)
                                 ? find_changers(pid, thread.tid, proc::as_int(thread.call.args[0]), facts)
                                 : Answer::kKnown;
  facts.object.clear();
  return of_instance == Answer::kKnown ? of_all : of_instance;
}

// All epoll instances have one name, and so have all timerfds. The answer "other" is kept until the next scan, because
// the kernel cannot compare the files any more when the holder has ended. After too many comparisons in one look, the
// answer is false.
bool WakerFinder::is_other_file(std::int32_t tid, std::int32_t fd, const proc::Holder& holder) {
  const std::array<std::int32_t, 4> pair{tid, fd, holder.tid, holder.fd};
  if (other_files_.contains(pair)) return true;
  ++polled_;
  if (has_polled_too_many()) return false;
  const bool is_other = !proc::is_same_file(tid, fd, holder.tid, holder.fd).value_or(true);
  if (is_other) other_files_.insert({pair, {holder.tid, holder.fd, tid, fd}});
  return is_other;
}

// A process that has the same epoll instance may let it watch another file (epoll_ctl()), which may be ready.
Answer WakerFinder::find_changers(std::int32_t pid, std::int32_t tid, std::int32_t epoll, WaitFacts& facts) {
  const std::string& name = object_of(tid, epoll).name;
  if (!has_scanned(name)) return Answer::kNeedsScan;
  if (lacks_holders()) return Answer::kUnknown;
  std::set<std::int32_t> known;
  for (const proc::Holder& holder : holders_[name]) {
    if (known.contains(holder.pid)) continue;
    const bool is_own = holder.pid == pid && holder.fd == epoll;
    if (!is_own && is_other_file(tid, epoll, holder)) continue;
    if (has_polled_too_many()) return Answer::kUnknown;
    known.insert(holder.pid);
    facts.wakers.push_back({holder.pid, model::kViaEpoll, 0, holder.fd});
  }
  return Answer::kKnown;
}

bool WakerFinder::may_kernel_end_wait(const Tree& tree, const std::vector<proc::Holder>& holders, bool of_eventfd) {
  KernelWork& work = of_eventfd ? may_write_to_eventfd_ : may_use_ring_;
  const auto is_so = [&](std::int32_t pid) {
    const auto [known, is_new] = work.by_pid.try_emplace(pid);
    if (is_new)
      known->second =
          of_eventfd ? proc::may_let_kernel_write_to_eventfd(pid, tables_) : proc::may_use_ring(pid, tables_);
    return known->second;
  };
  if (!work.of_tree) {
    work.of_tree = std::ranges::any_of(
        tree.living(), [&](const auto& entry) { return !entry.second.has_ended && is_so(entry.first); });
  }
  return *work.of_tree || std::ranges::any_of(holders, is_so, &proc::Holder::pid);
}

Answer WakerFinder::find_other_ends(std::int32_t pid, std::int32_t tid, std::int32_t fd, proc::WaitClass kind,
                                    const Tree& tree, bool thorough, WaitFacts& facts) {
  const proc::Object& object = object_of(tid, fd);
  facts.object = object.name;
  facts.is_fifo = object.kind == proc::ObjectKind::kFifo;
  if (object.kind == proc::ObjectKind::kOther || object.kind == proc::ObjectKind::kEpoll ||
      outside_.contains(object.name))
    return Answer::kNotProvable;
  if (object.kind == proc::ObjectKind::kSocket) {
    const Answer answer = find_socket_ends(pid, tid, fd, object, kind, facts);
    const bool may_go_on = answer == Answer::kKnown && thorough && may_kernel_end_wait(tree, {}, false);
    return may_go_on ? Answer::kUnknown : answer;
  }
  if (object.kind == proc::ObjectKind::kProcess) {
    const auto process = proc::resolve_pidfd(tid, fd);
    if (!process) return Answer::kUnknown;
    facts.wakers.push_back({*process, "wait4"});
    return Answer::kKnown;
  }
  if (!has_scanned(object.name)) return Answer::kNeedsScan;
  if (lacks_holders()) return Answer::kUnknown;
  if (object.kind == proc::ObjectKind::kTimerfd) return find_armers(tid, fd, object, facts);
  const std::vector<proc::Holder>& holders = holders_[object.name];
  const auto own = std::find_if(holders.begin(), holders.end(), [&](const proc::Holder& one) {
    return one.pid == pid && one.fd == fd && proc::share_table(one.tid, tid);
  });
  const bool is_eventfd = object.kind == proc::ObjectKind::kEventfd;
  const bool reads =
      kind == proc::WaitClass::kRead || (kind == proc::WaitClass::kPoll && (own == holders.end() || own->reads));
  const bool writes =
      kind == proc::WaitClass::kWrite || (kind == proc::WaitClass::kPoll && (own == holders.end() || own->writes));
  bool has_any = false;
  for (const proc::Holder& holder : holders) {
    const bool could = is_eventfd || (reads && holder.writes) || (writes && holder.reads);
    if (!could) continue;
    has_any = true;
    facts.wakers.push_back({holder.pid, is_eventfd ? "eventfd" : "pipe", 0, holder.fd});
  }
  if (is_eventfd && reads) {
    // A memory control group of version 1 may write to an eventfd for as long as the machine runs. But such a write
    // only increases the count of the eventfd. So it does not end the wait of a writer.
    if (!has_memory_groups_) has_memory_groups_ = proc::has_memory_groups_of_version_1();
    if (*has_memory_groups_) return Answer::kNotProvable;
  }
  if (thorough && may_kernel_end_wait(tree, holders, is_eventfd)) return Answer::kUnknown;
  if (thorough && reads && object.kind == proc::ObjectKind::kPipe) {
    if (!autofs_pipes_) autofs_pipes_ = proc::find_autofs_pipes();
    if (autofs_pipes_->contains(object.inode)) return Answer::kNotProvable;
  }
  add_receivers(facts);
  return has_any ? Answer::kKnown : Answer::kUnknown;
}

// Every process that has a descriptor of the timer may arm it.
Answer WakerFinder::find_armers(std::int32_t tid, std::int32_t fd, const proc::Object& timer, WaitFacts& facts) {
  const auto is_it = [&](const proc::Holder& one) { return !is_other_file(tid, fd, one); };
  const bool is_outside = std::ranges::any_of(outside_timers_, is_it);
  if (has_polled_too_many()) return Answer::kUnknown;
  if (is_outside) return Answer::kNotProvable;
  for (const proc::Holder& holder : holders_[timer.name]) {
    if (!is_other_file(tid, fd, holder)) facts.wakers.push_back({holder.pid, "timerfd", 0, holder.fd});
    if (has_polled_too_many()) return Answer::kUnknown;
  }
  if (facts.wakers.empty()) return Answer::kUnknown;
  add_receivers(facts);
  return Answer::kKnown;
}

void WakerFinder::add_receivers(WaitFacts& facts) const {
  for (const proc::Holder& one : receivers_) facts.wakers.push_back({one.pid, model::kViaReceiving, 0, one.fd});
}

const proc::Object& WakerFinder::object_of(std::int32_t tid, std::int32_t fd) {
  const auto [object, is_new] = objects_.try_emplace({tid, fd});
  if (is_new) object->second = proc::find_object(tid, fd);
  return object->second;
}

std::optional<proc::Peer> WakerFinder::peer_of(std::int32_t tid, std::uint64_t inode) {
  const auto [peer, is_new] = peers_.try_emplace(inode);
  if (is_new) peer->second = proc::find_peer(tid, inode);
  return peer->second;
}

Answer WakerFinder::find_socket_ends(std::int32_t pid, std::int32_t tid, std::int32_t fd, const proc::Object& socket,
                                     proc::WaitClass kind, WaitFacts& facts) {
  const auto peer = peer_of(tid, socket.inode);
  if (!peer) return Answer::kNotProvable;  // a listener, a socket for datagrams from anybody, or a remote peer
  const std::string other = proc::name_socket(peer->inode);
  if (outside_.contains(other) || proc::is_bound_to_time(pid, tid, fd).value_or(true)) return Answer::kNotProvable;
  if (kind == proc::WaitClass::kWrite ? peer->has_our_bytes : peer->has_bytes_for_us) return Answer::kUnknown;
  const bool both = has_scanned(socket.name);
  if (!has_scanned(other) || !both) return Answer::kNeedsScan;
  if (lacks_holders() || holders_[other].empty()) return Answer::kUnknown;
  for (const proc::Holder& holder : holders_[other]) facts.wakers.push_back({holder.pid, "socket", 0, holder.fd});
  // A process that has the thread's own end of the socket can also wake the thread, by shutdown().
  for (const proc::Holder& holder : holders_[socket.name])
    facts.wakers.push_back({holder.pid, model::kViaShutdown, 0, holder.fd});
  add_receivers(facts);
  return Answer::kKnown;
}

const std::vector<proc::FileLock>& WakerFinder::file_locks() {
  constexpr std::size_t kMaxLocks = 4U << 20U;
  if (!file_locks_) file_locks_ = proc::parse_file_locks(proc::read_file("/proc/locks", kMaxLocks).text);
  return *file_locks_;
}

bool WakerFinder::add_lock_holders(const std::string& path, const proc::LockRequest& request, const char* via,
                                   WaitFacts& facts) {
  bool has_any = false;
  for (const proc::Holder& holder : holders_[path]) {
    const proc::ReadText text = proc::read_file(proc::proc_path(holder.tid, fmt::format("fdinfo/{}", holder.fd)));
    // If the descriptor was closed meanwhile, its process ran, and may have the file open under another number.
    if (text && !has_conflict(text.text, request)) continue;
    has_any = true;
    facts.wakers.push_back({holder.pid, via, 0, holder.fd});
  }
  return has_any;
}

// All processes that have one open file see it under the same path. So the path of the process that took the lock leads
// to all processes that can release the lock.
std::optional<std::string> WakerFinder::find_other_path(const proc::FileLock& lock, const proc::LockRequest& request) {
  constexpr std::size_t kMost = 256;  // descriptors that are examined
  if (lock.pid <= 0) return std::nullopt;
  std::vector<proc::Descriptor> files =
      tables_.find(lock.pid, [](std::string_view text) { return text.starts_with('/'); });
  if (files.size() > kMost) files.resize(kMost);
  for (const proc::Descriptor& file : files) {
    const proc::ReadText text = proc::read_file(proc::proc_path(file.tid, fmt::format("fdinfo/{}", file.fd)));
    if (has_conflict(text.text, request))
      return proc::read_link(proc::proc_path(file.tid, fmt::format("fd/{}", file.fd)));
  }
  return std::nullopt;
}

void WakerFinder::note_other_path(const proc::LockRequest& request) {
  const auto prevents = [&](const proc::FileLock& lock) {
    return lock.is_of_file && proc::conflicts_with(lock, request);
  };
  const auto& locks = file_locks();
  const auto lock = std::ranges::find_if(locks, prevents);
  const auto path = lock != locks.end() ? find_other_path(*lock, request) : std::nullopt;
  if (path) has_scanned(*path);
}

Answer WakerFinder::find_lock_holders(std::int32_t pid, const proc::ThreadSample& thread, WaitFacts& facts) {
  const auto request = read_request(thread, proc::classify(thread).fd, facts.object);
  if (!request) return Answer::kUnknown;
  const bool has_holders = has_scanned(facts.object);
  if (!has_holders) {
    note_other_path(*request);
    return Answer::kNeedsScan;
  }
  if (lacks_holders()) return Answer::kUnknown;
  // Inside of a pid namespace /proc/locks leaves out locks that are held outside of the namespace. Then all holders are
  // known only if one visible lock excludes all others: a write lock on the whole range.
  const auto& locks = file_locks();
  const auto excludes = [&](const proc::FileLock& lock) {
    return proc::conflicts_with(lock, *request) && covers(lock, *request);
  };
  if (!sees_all_ && std::none_of(locks.begin(), locks.end(), excludes)) return Answer::kUnknown;
  // The thread waits until no such lock is left. So for the locks that belong to open files, the holders of one of them
  // suffice: as long as these are stuck, the thread waits.
  bool has_any = false;
  for (const proc::FileLock& lock : locks) {
    if (!proc::conflicts_with(lock, *request)) continue;
    if (!lock.is_of_file) {
      if (lock.pid <= 0) return Answer::kUnknown;
      if (lock.pid != pid || is_of_open_file(thread)) facts.wakers.push_back({lock.pid, "fcntl"});
      continue;
    }
    const char* const via = lock.family == proc::LockFamily::kFlock ? "flock" : "fcntl";
    has_any = has_any || add_lock_holders(facts.object, *request, via, facts);
    if (has_any) continue;
    const auto other = find_other_path(lock, *request);
    if (!other) return Answer::kUnknown;
    if (!has_scanned(*other)) return Answer::kNeedsScan;
    has_any = add_lock_holders(*other, *request, via, facts);
    if (!has_any) return Answer::kUnknown;
  }
  const Answer answer = known_if_any(facts);
  if (answer == Answer::kKnown) add_receivers(facts);
  return answer;
}

const std::vector<proc::Holder>& WakerFinder::memory_holders(const std::string& path, const Tree& tree) {
  const auto [holders, is_new] = memory_holders_.try_emplace(path);
  if (is_new && path != kAnonymousMemory) {
    tables_.read_all(list_living(tree));
    holders->second = tables_.find_holders({path});
    std::erase_if(holders->second, [](const proc::Holder& holder) { return proc::is_own_process(holder.pid); });
  }
  return holders->second;
}

bool WakerFinder::has_descriptors_on_their_way(const Tree& tree) {
  return !tables_.find_sockets_with_descriptors(list_living(tree)).empty();
}

Answer WakerFinder::find_shared(std::int32_t pid, const proc::SharedPlace& place, const Tree& tree, WaitFacts& facts) {
  if (!shared_) {
    shared_ = proc::SharedMemory::read(list_living(tree));
  }
  facts.object = place.path;
  const auto mappers = shared_->mappers(place);
  if (!mappers) return Answer::kUnknown;
  const proc::FutexWord& word = facts.word;
  if (word.use != model::FutexUse::kUnknown && word.owner != 0 && word.use != model::FutexUse::kJoin) {
    // The owner's tid is meaningful only if all processes that map the word are in one pid namespace. A process that
    // forksight cannot see may also map the word.
    if (!proc::are_in_namespace_of(pid, *mappers)) return Answer::kUnknown;
    if (!sees_all_ && !proc::is_closed_to_others(pid, place)) return Answer::kUnknown;
    if (word.owner_is_gone) {
      // The owner may be a thread of a hidden process that has this number in another pid namespace. Two processes are
      // known to be in one namespace if both are in that of /proc.
      find_hidden(tree);
      const auto own = proc::parse_status(proc::read_file(proc::proc_path(pid, "status")).text);
      const bool is_here = own && own->ns_depth == 1;
      const auto may_own = [&](const HiddenProcess& one) { return !is_here || one.ns_depth != 1; };
      if (std::ranges::any_of(hidden_descendants_, may_own)) return Answer::kUnknown;
    }
    facts.wakers_known = true;
    if (word.owner_is_gone) return Answer::kKnown;
    const auto status = proc::read_file(proc::proc_path(word.owner, "status"));
    const auto owner_process = status ? proc::find_field(status.text, "Tgid") : std::nullopt;
    const auto owner_pid =
        static_cast<std::int32_t>(owner_process ? proc::parse_decimal(*owner_process).value_or(0) : 0);
    const bool is_known = std::find(mappers->begin(), mappers->end(), owner_pid) != mappers->end();
    facts.wakers_known = is_known;
    if (is_known) facts.wakers = {{owner_pid, word.use == model::FutexUse::kMutex ? "mutex" : "rwlock", word.owner}};
    return is_known ? Answer::kKnown : Answer::kUnknown;
  }
  if (!proc::is_closed_to_others(pid, place)) {
    facts.is_open_to_all = true;
    return Answer::kNotProvable;
  }
  if (place.path != kAnonymousMemory && has_descriptors_on_their_way(tree)) return Answer::kUnknown;
  find_hidden(tree);
  if (!hidden_descendants_.empty()) return Answer::kUnknown;
  for (const std::int32_t mapper : *mappers) facts.wakers.push_back({mapper, "shared memory"});
  for (const proc::Holder& holder : memory_holders(place.path, tree)) {
    const bool has_mapped = std::ranges::find(*mappers, holder.pid) != mappers->end();
    if (!has_mapped) facts.wakers.push_back({holder.pid, "shared memory", 0, holder.fd});
  }
  const bool has_pid = std::find(mappers->begin(), mappers->end(), pid) != mappers->end();
  const Answer answer = within_limit(has_pid && !tables_.is_cut() ? Answer::kKnown : Answer::kUnknown, facts);
  facts.wakers_known = answer == Answer::kKnown;
  return answer;
}

void WakerFinder::find_hidden(const Tree& tree) {
  if (!has_sought_hidden_) hidden_descendants_ = find_hidden_descendants(tree);
  has_sought_hidden_ = true;
}

void WakerFinder::scan_members(const Tree& tree) {
  const Cost cost;
  const std::set<std::int32_t> members = list_living(tree);
  tables_.read(std::vector(members.begin(), members.end()));
  is_scan_of_machine_ = false;
  fill_holders(members, {});
  next_scan_of_members_ = Clock::now() + cost.used() * kScanShareOfMembers;
}

void WakerFinder::scan(const Tree& tree) {
  const Cost cost;
  repeated_scans_ = Clock::now() < next_scan_ ? repeated_scans_ + 1 : 0;
  has_ended_holder_ = false;
  const std::set<std::int32_t> members = list_living(tree);
  // A process may stop hiding its descriptors during the scan. Then one of the two searches finds it, or the scan does.
  std::vector<HiddenProcess> hidden = find_hidden_descendants(tree);
  const std::set<std::string>& queues = tables_.find_sockets_with_descriptors(members);
  tables_.read_all(members);
  for (HiddenProcess& later : find_hidden_descendants(tree)) {
    if (std::ranges::find(hidden, later.pid, &HiddenProcess::pid) == hidden.end()) hidden.push_back(std::move(later));
  }
  hidden_descendants_ = std::move(hidden);
  has_sought_hidden_ = true;
  is_scan_of_machine_ = true;
  fill_holders(members, queues);
  next_scan_ = Clock::now() + cost.used() * kScanShare;
}

// Searches the tables that were read for the objects that find() has noted, and for the sockets `queues`.
void WakerFinder::fill_holders(const std::set<std::int32_t>& members, const std::set<std::string>& queues) {
  scanned_.insert(unscanned_.begin(), unscanned_.end());
  unscanned_.clear();
  holders_.clear();
  other_files_.clear();
  std::set<std::string> asked = queues;
  asked.insert(scanned_.begin(), scanned_.end());
  receivers_.clear();
  for (proc::Holder& holder : tables_.find_holders(asked)) {
    if (queues.contains(holder.object)) receivers_.push_back(holder);
    std::string object = holder.object;
    holders_[std::move(object)].push_back(std::move(holder));
  }
  refused_ = tables_.find_refused(members);
  is_scan_cut_ = tables_.is_cut();
  // No further scan needs to search for objects that no process has open any more.
  std::erase_if(scanned_, [&](const std::string& object) { return !holders_.contains(object); });
}

}  // namespace forksight::watch
