#include "watch/enders.hpp"

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "files/dead_places.hpp"
#include "model/timerfd.hpp"
#include "proc/descriptors.hpp"
#include "proc/last_run.hpp"
#include "proc/mappings.hpp"
#include "proc/namespaces.hpp"
#include "proc/poll_set.hpp"
#include "proc/proc_fs.hpp"
#include "proc/process_memory.hpp"
#include "proc/process_traits.hpp"
#include "proc/python_interrupt.hpp"
#include "proc/socket_names.hpp"
#include "proc/sockets.hpp"
#include "proc/wait_class.hpp"
#include "watch/describe_wait.hpp"
#include "watch/futex_lookup.hpp"
#include "watch/time_left.hpp"
#include "watch/wait_objects.hpp"
#include "watch/wait_words.hpp"
#include "watch/wakers.hpp"
#include "watch/ways_out.hpp"

namespace forksight::watch {
namespace {

constexpr std::size_t kMostPolled = 256;  // polled descriptors that are examined for one thread
constexpr std::size_t kMostPolledOfAll = 16'384;
constexpr std::size_t kMostEnders = 256;     // for one wait
constexpr std::size_t kMostOfCommand = 100;  // bytes of a command line

model::Ender of_process(std::int32_t pid, std::string via, std::int32_t tid = 0, std::int32_t fd = -1) {
  model::Ender ender;
  ender.pid = pid;
  ender.tid = tid;
  ender.fd = fd;
  ender.via = std::move(via);
  return ender;
}

model::Ender of_words(model::EnderKind kind, std::string what) {
  model::Ender ender;
  ender.kind = kind;
  ender.what = std::move(what);
  return ender;
}

model::Ender anybody(std::string what) { return of_words(model::EnderKind::kAnybody, std::move(what)); }

model::Ender of_timer(std::optional<std::uint64_t> left_ms, std::string what) {
  model::Ender ender = of_words(model::EnderKind::kTimer, std::move(what));
  ender.in_ms = left_ms;
  return ender;
}

std::string read_command(std::int32_t pid) {
  std::string text;
  for (const std::string& word : proc::read_cmdline(pid)) {
    if (!text.empty()) text += ' ';
    text += word;
    if (text.size() > kMostOfCommand) break;
  }
  if (text.size() > kMostOfCommand) {
    std::size_t end = kMostOfCommand;
    // do not cut a character in half
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    text = text.substr(0, end) + "...";
  }
  if (!text.empty()) return text;
  const auto stat = proc::read_stat(pid);
  return stat ? fmt::format("[{}]", stat->comm) : std::string();
}

// An object that a thread waits for. Processes that have the object open may end the wait.
struct End {
  std::int32_t fd = -1;  // the waiter's own descriptor
  std::string object;
  bool by_writers = false;  // a holder that may write to the object can end the wait
  bool by_readers = false;  // a holder that may read from the object can end the wait
  bool is_polled = false;   // true: only the mode of the waiter's descriptor shows whether the waiter reads or writes
  const char* via = "";
};

struct Plan {
  std::vector<End> ends;
  std::vector<model::Ender> others;
};

class Search {
 public:
  Search(const files::Reader& reader, std::vector<Waiter>& waiters, const Tree& tree, proc::DescriptorTables& tables)
      : reader_(reader), waiters_(waiters), tree_(tree), tables_(tables) {}

  void run() {
    plan_all();
    if (!wanted_.empty()) tables_.read_all({});
    for (proc::Holder& holder : tables_.find_holders(wanted_)) {
      std::string object = holder.object;
      holders_[std::move(object)].push_back(std::move(holder));
    }
    for (std::size_t at = 0; at < waiters_.size(); ++at) fill(waiters_[at], plans_[at]);
  }

 private:
  void plan_all() {
    std::vector<proc::ThreadsOf> processes;
    std::map<std::int32_t, std::size_t> indexes;  // into `processes`, by pid
    for (const Waiter& waiter : waiters_) {
      const auto [index, is_new] = indexes.try_emplace(waiter.pid, processes.size());
      if (is_new) processes.push_back({waiter.pid, {}});
      processes[index->second].tids.push_back(waiter.thread.tid);
    }
    proc::MemoriesAhead ahead(std::move(processes));
    for (Waiter& waiter : waiters_) {
      ahead.reach(indexes.at(waiter.pid));
      plans_.push_back(plan(waiter));
    }
  }

  Plan plan(Waiter& waiter) {
    const proc::ThreadSample& thread = waiter.thread;
    Plan plan;
    WaitFacts facts;
    const proc::WaitTarget target = proc::classify(thread);
    const bool is_asleep = thread.call.in_syscall && !thread.ended() && thread.status.state != 'R';
    const bool is_futex = is_asleep && thread.call.number == SYS_futex;
    if (is_futex) facts = futexes(waiter.pid).look_up(thread);
    std::int32_t fd = -1;
    if (is_asleep) plan_call(waiter, plan, facts, fd);
    waiter.wait = describe_wait(thread, &facts);
    waiter.wait.wakers.clear();
    waiter.wait.wakers_known = false;
    if (fd >= 0) waiter.wait.fd = fd;
    const auto slept = proc::idle_time(waiter.pid, thread.tid);
    if (slept) waiter.wait.for_ms = static_cast<std::uint64_t>(slept->count());
    if (!is_asleep && target.kind != proc::WaitClass::kTraced) return plan;
    waiter.wait.target = describe_target(reader_, tables_, waiter.pid, thread, facts);
    note_object(waiter);
    return plan;
  }

  // Adds the facts about an awaited object that has neither a descriptor nor an address: a FIFO, a semaphore, signals.
  static void note_object(Waiter& waiter) {
    if (auto fifo = find_fifo_open(waiter.thread)) {
      waiter.wait.kind = model::WaitKind::kFifoOpen;
      waiter.wait.path = std::move(fifo->path);
      waiter.wait.is_unlinked = fifo->is_unlinked;
    }
    waiter.wait.semaphore = find_semaphore(waiter.thread);
    if (waiter.thread.call.in_syscall && waiter.thread.call.number == SYS_rt_sigtimedwait)
      waiter.wait.woken_by = read_signal_set(waiter.thread);
  }

  void plan_call(const Waiter& waiter, Plan& plan, WaitFacts& facts, std::int32_t& fd) {
    const proc::ThreadSample& thread = waiter.thread;
    if (proc::is_poll(thread.call)) return plan_poll(waiter, plan);
    switch (thread.call.number) {
      case SYS_futex: return plan_futex(waiter, facts, plan);
      case SYS_wait4:
      case SYS_waitid: return plan_child(waiter, plan);
      case SYS_read:
      case SYS_readv:
      case SYS_recvfrom:
      case SYS_recvmsg:
      case SYS_recvmmsg:
      case SYS_accept:
      case SYS_accept4:
      case SYS_mq_timedreceive: return plan_transfer(waiter, true, plan, facts, fd);
      case SYS_write:
      case SYS_writev:
      case SYS_sendto:
      case SYS_sendmsg:
      case SYS_sendmmsg:
      case SYS_connect:
      case SYS_mq_timedsend: return plan_transfer(waiter, false, plan, facts, fd);
      case SYS_flock:
      case SYS_fcntl: return plan_lock(waiter, plan, facts);
      case SYS_open:
      case SYS_openat: return plan_open(waiter, plan);
      case SYS_semop:
      case SYS_semtimedop: return plan_semaphore(waiter, plan);
      case SYS_msgrcv: return plan.others.push_back(anybody("whoever sends a message to that queue"));
      case SYS_msgsnd: return plan.others.push_back(anybody("whoever takes a message from that queue"));
      case SYS_rt_sigtimedwait: return plan_signal_set(waiter, plan);
      case SYS_vfork:
      case SYS_clone:
      case SYS_clone3: return plan_vfork(waiter, plan);
      default: return;
    }
  }

  void plan_futex(const Waiter& waiter, WaitFacts& facts, Plan& plan) {
    const proc::FutexWord& word = facts.word;
    const bool has_owner = word.use != model::FutexUse::kUnknown && word.owner != 0;
    if (has_owner) {
      const char* const via = word.use == model::FutexUse::kMutex  ? "mutex"
                              : word.use == model::FutexUse::kJoin ? "join"
                              : word.use == model::FutexUse::kGil  ? "GIL"
                                                                   : "rwlock";
      if (!word.owner_is_gone) plan.others.push_back(of_process(process_of(word.owner, waiter.pid), via, word.owner));
      if (word.use == model::FutexUse::kJoin) return;
    }
    if (facts.mapping != WordMapping::kShared) {
      // If a lock has an owner, that thread can end the wait. For other objects, the memory does not show which thread
      // can end the wait.
      if (!has_owner && is_threaded(waiter.pid)) plan.others.push_back(of_process(waiter.pid, "futex"));
      return;
    }
    const auto place = futexes(waiter.pid).find_shared(waiter.thread);
    if (!place) return;
    facts.object = place->path;
    if (has_owner) return;
    for (const std::int32_t mapper : shared().mappers(*place).value_or(std::vector<std::int32_t>())) {
      if (mapper != waiter.pid || is_threaded(mapper)) plan.others.push_back(of_process(mapper, "shared memory"));
    }
    if (place->path != "/dev/zero (deleted)") add_end(plan, {-1, place->path, true, true, false, "shared memory"});
    if (!proc::is_closed_to_others(waiter.thread.tid, *place))
      plan.others.push_back(anybody(fmt::format("whoever maps {}", place->path)));
  }

  void plan_child(const Waiter& waiter, Plan& plan) {
    const proc::WaitTarget target = proc::classify(waiter.thread);
    if (target.pidfd >= 0) {
      if (const auto process = proc::resolve_pidfd(waiter.thread.tid, target.pidfd))
        plan.others.push_back(of_process(*process, "wait4"));
      return;
    }
    const auto is_awaited = [&](std::int32_t child) {
      return target.child <= 0 ||
             proc::is_called(child, static_cast<std::int32_t>(target.child), waiter.thread.status.ns_depth);
    };
    std::set<std::int32_t> children;
    for (const std::int32_t child : proc::read_children(waiter.pid)) children.insert(child);
    // If the waiting process is a tracer, wait4() and waitid() also wait for the processes that it traces.
    if (!traced_) traced_ = find_traced(tree_);
    for (auto [at, end] = traced_->equal_range(waiter.pid); at != end; ++at) children.insert(at->second);
    for (const std::int32_t child : children) {
      if (is_awaited(child)) plan.others.push_back(of_process(child, "wait4"));
    }
  }

  static void plan_vfork(const Waiter& waiter, Plan& plan) {
    const auto path = proc::task_path(waiter.pid, waiter.thread.tid, "children");
    for (const std::int32_t child : proc::parse_pids(proc::read_file(path).text))
      plan.others.push_back(of_process(child, "vfork"));
  }

  void plan_transfer(const Waiter& waiter, bool reads, Plan& plan, WaitFacts& facts, std::int32_t& fd) {
    fd = proc::as_int(waiter.thread.call.args[0]);
    if (fd < 0) return;
    const proc::Object object = proc::find_object(waiter.thread.tid, fd);
    facts.object = object.name;
    facts.is_fifo = object.kind == proc::ObjectKind::kFifo || is_named_fifo(waiter.thread.tid, fd);
    add_descriptor(waiter, fd, reads, !reads, false, plan);
  }

  void plan_poll(const Waiter& waiter, Plan& plan) {
    if (polled_left_ == 0) return;
    const auto fds = proc::read_poll_set(waiter.thread);
    if (!fds) return;
    for (std::size_t at = 0; at < fds->size() && at < kMostPolled && polled_left_ > 0; ++at, --polled_left_)
      add_descriptor(waiter, (*fds)[at], true, true, true, plan);
  }

  void plan_lock(const Waiter& waiter, Plan& plan, WaitFacts& facts) {
    if (proc::classify(waiter.thread).kind != proc::WaitClass::kFileLock) return;
    if (!wakers_) wakers_.emplace(tables_);
    if (wakers_->find(waiter.pid, waiter.thread, tree_, true, facts) == WakerFinder::Answer::kNeedsScan) {
      wakers_->scan(tree_);
      facts.wakers.clear();
      wakers_->find(waiter.pid, waiter.thread, tree_, true, facts);
    }
    for (const Waker& waker : facts.wakers)
      if (model::is_waited_for(waker.via)) plan.others.push_back(of_process(waker.pid, waker.via, waker.tid, waker.fd));
  }

  void plan_open(const Waiter& waiter, Plan& plan) {
    const auto fifo = find_fifo_open(waiter.thread);
    if (!fifo || fifo->is_unlinked) return;
    add_end(plan, {-1, fifo->path, fifo->reads, !fifo->reads, false, "pipe"});
    plan.others.push_back(anybody(fmt::format("whoever opens it for {}", fifo->reads ? "writing" : "reading")));
  }

  static void plan_semaphore(const Waiter& waiter, Plan& plan) {
    const auto wait = find_semaphore(waiter.thread);
    const bool is_known = wait && wait->last_pid > 0 && !wait->last_is_gone && wait->last_pid != waiter.pid;
    if (is_known) plan.others.push_back(of_process(wait->last_pid, "semaphore"));
    plan.others.push_back(anybody(wait && wait->operation == 0 ? "whoever takes from that semaphore"
                                                               : "whoever gives to that semaphore"));
  }

  static std::uint64_t read_signal_set(const proc::ThreadSample& thread) {
    std::uint64_t set = 0;
    if (!proc::ProcessMemory(thread.tid).read(thread.call.args[0], std::as_writable_bytes(std::span(&set, 1))))
      return 0;
    return set & ~std::uint64_t{1ULL << (SIGKILL - 1) | 1ULL << (SIGSTOP - 1)};
  }

  static void plan_signal_set(const Waiter& waiter, Plan& plan) {
    const std::uint64_t set = read_signal_set(waiter.thread);
    if (set != 0) plan.others.push_back(of_words(model::EnderKind::kSignal, name_signals(set)));
  }

  void add_end(Plan& plan, End end) {
    wanted_.insert(end.object);
    plan.ends.push_back(std::move(end));
  }

  static bool is_named_fifo(std::int32_t tid, std::int32_t fd) {
    struct stat status {};
    return files::stat_living(proc::proc_path(tid, fmt::format("fd/{}", fd)), status) == 0 && S_ISFIFO(status.st_mode);
  }

  void add_descriptor(const Waiter& waiter, std::int32_t fd, bool reads, bool writes, bool is_polled, Plan& plan) {
    const std::int32_t tid = waiter.thread.tid;
    const auto [known, is_new] = objects_.try_emplace({tid, fd});
    if (is_new) known->second = proc::find_object(tid, fd);
    const proc::Object& object = known->second;
    switch (object.kind) {
      case proc::ObjectKind::kPipe:
      case proc::ObjectKind::kFifo: return add_end(plan, {fd, object.name, reads, writes, is_polled, "pipe"});
      case proc::ObjectKind::kEventfd: return add_end(plan, {fd, object.name, true, true, false, "eventfd"});
      case proc::ObjectKind::kSocket: return add_socket(waiter.pid, tid, fd, object, plan);
      case proc::ObjectKind::kProcess:
        if (const auto process = proc::resolve_pidfd(tid, fd)) plan.others.push_back(of_process(*process, "wait4"));
        return;
      case proc::ObjectKind::kEpoll:
        return plan.others.push_back(anybody(fmt::format("an event at the epoll instance of descriptor {}", fd)));
      case proc::ObjectKind::kTimerfd:
        return plan.others.push_back(anybody(fmt::format("whoever arms the timer of descriptor {}", fd)));
      case proc::ObjectKind::kOther: break;
    }
    if (object.name == model::kTimerfdName) {
      const auto left = parse_timer_left(proc::read_file(proc::proc_path(tid, fmt::format("fdinfo/{}", fd))).text);
      if (left) plan.others.push_back(of_timer(left, fmt::format("the timer of descriptor {}", fd)));
      return;
    }
    if (object.name == "anon_inode:[signalfd]") {
      const proc::ReadText text = proc::read_file(proc::proc_path(tid, fmt::format("fdinfo/{}", fd)));
      const auto field = proc::find_field(text.text, "sigmask");
      const std::uint64_t set = field ? std::strtoull(std::string(*field).c_str(), nullptr, 16) : 0;
      if (set != 0) plan.others.push_back(of_words(model::EnderKind::kSignal, name_signals(set)));
      return;
    }
    struct stat status {};
    const bool is_known = files::stat_living(proc::proc_path(tid, fmt::format("fd/{}", fd)), status) == 0;
    if (is_known && S_ISFIFO(status.st_mode)) {
      add_end(plan, {fd, object.name, reads, writes, is_polled, "pipe"});
      const char* const way = reads && writes ? "opens" : reads ? "writes to" : "reads from";
      plan.others.push_back(anybody(fmt::format("whoever {} {}", way, object.name)));
      return;
    }
    if (is_known && S_ISREG(status.st_mode)) {
      // The only regular file at which a thread can wait is a POSIX message queue. Such queues are files of a file
      // system of their own.
      return add_end(plan, {fd, object.name, reads, writes, is_polled, "message queue"});
    }
    if (object.name.empty()) return;
    const bool is_terminal = object.name.starts_with("/dev/pts/") || object.name.starts_with("/dev/tty");
    plan.others.push_back(anybody(is_terminal && writes && !reads
                                      ? fmt::format("whoever reads what is written to {}", object.name)
                                  : is_terminal ? fmt::format("whoever types at {}", object.name)
                                                : fmt::format("an event at {}", object.name)));
  }

  void add_socket(std::int32_t pid, std::int32_t tid, std::int32_t fd, const proc::Object& object, Plan& plan) {
    const auto [peer_entry, is_new] = peers_.try_emplace(object.inode);
    if (is_new) peer_entry->second = proc::find_peer(tid, object.inode);
    if (const auto& peer = peer_entry->second) {
      add_end(plan, {fd, proc::name_socket(peer->inode), true, true, false, "socket"});
    } else {
      const auto name = proc::find_socket_name(tid, object.inode);
      const std::string called = name ? proc::describe_socket(*name) : object.name;
      plan.others.push_back(anybody(!name || name->remote.empty()
                                        ? fmt::format("whoever connects or sends to {} (descriptor {})", called, fd)
                                        : fmt::format("the other end of {} (descriptor {})", called, fd)));
    }
    if (proc::is_bound_to_time(pid, tid, fd).value_or(false))
      plan.others.push_back(of_timer({}, fmt::format("a time limit of descriptor {}", fd)));
  }

  void fill(Waiter& waiter, Plan& plan) {
    model::Wait& wait = waiter.wait;
    wait.are_enders_known = true;
    wait.woken_by |= find_caught(waiter.thread.status, has_libc(waiter), handlers_of(waiter).handles_abort);
    if (waiter.thread.ended() || wait.kind == model::WaitKind::kRunning) return;
    add_hold(waiter);
    std::set<std::tuple<std::int32_t, std::int32_t, std::int32_t>> known;
    const auto add = [&](model::Ender ender) {
      const bool is_process = ender.kind == model::EnderKind::kProcess;
      if (is_process && (ender.pid <= 0 || !known.emplace(ender.pid, ender.tid, ender.fd).second)) return;
      if (wait.enders.size() >= kMostEnders) return;
      if (is_process) describe_process(ender);
      wait.enders.push_back(std::move(ender));
    };
    for (const End& end : plan.ends) {
      for (const model::Ender& ender : find_ends(waiter, end)) add(ender);
    }
    // If descriptors were left out, they may be the ones that could end the wait.
    if (!plan.ends.empty() && wait.enders.empty() && tables_.is_cut()) wait.are_enders_known = false;
    for (model::Ender& ender : plan.others) add(std::move(ender));
    if (wait.kind == model::WaitKind::kTraced) add(of_process(waiter.thread.status.tracer, "ptrace"));
    // A thread that waits for a GIL waits again when its timeout is over. So the timeout does not end that wait.
    const bool ends_by_time = wait.use != model::FutexUse::kGil;
    if (const TimeLimit limit = find_time_limit(waiter.thread, wait.for_ms); ends_by_time && limit.has_one)
      add(of_timer(limit.left_ms, "its time limit"));
    add_handlers(waiter, add);
  }

  std::vector<model::Ender> find_ends(const Waiter& waiter, const End& end) const {
    std::vector<model::Ender> found;
    const auto held = holders_.find(end.object);
    if (held == holders_.end()) return found;
    const auto& holders = held->second;
    const auto own = std::ranges::find_if(holders, [&](const proc::Holder& one) {
      return one.pid == waiter.pid && one.fd == end.fd && proc::share_table(one.tid, waiter.thread.tid);
    });
    const bool has_own = end.is_polled && own != holders.end();
    const bool by_writers = end.by_writers && (!has_own || own->reads);
    const bool by_readers = end.by_readers && (!has_own || own->writes);
    const bool is_symmetric = end.via == std::string_view("eventfd") || end.via == std::string_view("shared memory");
    for (const proc::Holder& holder : holders) {
      const bool could = is_symmetric || (by_writers && holder.writes) || (by_readers && holder.reads);
      const bool is_itself = holder.pid == waiter.pid && holder.fd == end.fd && is_symmetric;
      if (could && !is_itself) found.push_back(of_process(holder.pid, end.via, 0, holder.fd));
      if (found.size() > kMostEnders) break;
    }
    return found;
  }

  // Adds the commands that let a stopped or frozen process run again. These commands do not replace the other enders:
  // after such a command, the thread still waits in the call that /proc shows.
  void add_hold(Waiter& waiter) {
    const char state = waiter.thread.status.state;
    if (state == 'T')
      waiter.wait.enders.push_back(of_words(model::EnderKind::kContinue, fmt::format("kill -CONT {}", waiter.pid)));
    const auto [frozen, is_new] = frozen_.try_emplace(waiter.pid);
    if (is_new && freezers_.is_frozen(waiter.pid)) frozen->second = how_to_thaw(waiter.pid);
    if (!frozen->second) return;
    waiter.wait.call = "frozen";
    waiter.wait.enders.push_back(of_words(model::EnderKind::kContinue, *frozen->second));
  }

  // True if the thread continues to wait in the same call after a signal handler has run.
  static bool goes_on_after_handlers(const model::Wait& wait) {
    return wait.kind == model::WaitKind::kVfork || wait.kind == model::WaitKind::kTraced ||
           (wait.kind == model::WaitKind::kFutex && wait.use != model::FutexUse::kUnknown);
  }

  // Returns what is known of the handlers of a Python program. For another program, returns that it has none of them.
  proc::PythonHandlers handlers_of(const Waiter& waiter) {
    const std::uint64_t of_interest = 1ULL << (SIGINT - 1) | 1ULL << (SIGABRT - 1);
    if ((waiter.thread.status.caught & of_interest) == 0) return {};
    const auto [known, is_new] = python_handlers_.try_emplace(waiter.pid);
    if (is_new && is_python_program(proc::read_exe(waiter.pid)))
      known->second = proc::read_python_handlers(waiter.thread.tid).value_or(proc::PythonHandlers{true, false});
    return known->second;
  }

  template <class Add>
  void add_handlers(const Waiter& waiter, const Add& add) {
    if (goes_on_after_handlers(waiter.wait) || waiter.thread.status.state == 'D') return;
    const proc::PythonHandlers handlers = handlers_of(waiter);
    std::uint64_t caught = find_caught(waiter.thread.status, has_libc(waiter), handlers.handles_abort);
    if (handlers.has_default_interrupt) caught &= ~(1ULL << (SIGINT - 1));
    if (caught != 0) add(of_words(model::EnderKind::kSignal, "a handler of " + name_signals(caught)));
  }

  void describe_process(model::Ender& ender) {
    const auto [known, is_new] = processes_.try_emplace(ender.pid);
    model::Ender& look = known->second;
    if (is_new) {
      const auto stat = proc::read_stat(ender.pid);
      look.command = read_command(ender.pid);
      look.state = stat ? stat->state : 'X';
      look.is_frozen = freezers_.is_frozen(ender.pid);
    }
    ender.command = look.command;
    ender.state = look.state;
    ender.is_frozen = look.is_frozen;
    if (ender.fd >= 0) ender.may_have_written = may_have_written(ender.pid);
    if (ender.tid == 0) return;
    const auto [thread, is_new_thread] = states_.try_emplace({ender.pid, ender.tid}, 'X');
    if (is_new_thread) {
      const auto stat = proc::parse_stat(proc::read_file(proc::task_path(ender.pid, ender.tid, "stat")).text);
      if (stat) thread->second = stat->state;
    }
    ender.state = thread->second;
  }

  bool may_have_written(std::int32_t pid) {
    const auto [known, is_new] = have_written_.try_emplace(pid);
    if (is_new) {
      const auto writes = parse_write_calls(proc::read_file(proc::proc_path(pid, "io")).text);
      known->second = !writes || *writes != 0;
    }
    return known->second;
  }

  static std::int32_t process_of(std::int32_t tid, std::int32_t first) {
    if (proc::has_entry(proc::task_path(first, tid, "stat"))) return first;
    const proc::ReadText status = proc::read_file(proc::proc_path(tid, "status"));
    const auto field = status ? proc::find_field(status.text, "Tgid") : std::nullopt;
    return static_cast<std::int32_t>(field ? proc::parse_decimal(*field).value_or(0) : 0);
  }

  bool has_libc(const Waiter& waiter) {
    const auto [known, is_new] = have_libc_.try_emplace(waiter.pid);
    if (is_new) known->second = proc::has_libc(futexes(waiter.pid).mappings(waiter.thread.tid));
    return known->second;
  }

  bool is_threaded(std::int32_t pid) {
    const auto [known, is_new] = threaded_.try_emplace(pid);
    if (is_new) known->second = proc::list_numbers(proc::proc_path(pid, "task")).numbers.size() > 1;
    return known->second;
  }

  const proc::SharedMemory& shared() {
    if (!shared_) shared_ = proc::SharedMemory::read({});
    return *shared_;
  }

  FutexLookup& futexes(std::int32_t pid) { return futexes_.try_emplace(pid, pid).first->second; }

  const files::Reader& reader_;
  std::vector<Waiter>& waiters_;
  const Tree& tree_;
  proc::DescriptorTables& tables_;
  std::vector<Plan> plans_;
  std::set<std::string> wanted_;
  std::map<std::string, std::vector<proc::Holder>> holders_;
  std::map<std::int32_t, FutexLookup> futexes_;
  std::map<std::int32_t, model::Ender> processes_;                // by pid: an ender without thread and descriptor
  std::map<std::int32_t, std::optional<std::string>> frozen_;     // how to thaw each process
  std::map<std::int32_t, bool> have_libc_;                        // by pid: whether the process has glibc
  std::map<std::int32_t, bool> have_written_;                     // whether each ender may have written to a descriptor
  std::map<std::int32_t, bool> threaded_;                         // whether the process has more than one thread
  std::map<std::pair<std::int32_t, std::int32_t>, char> states_;  // states of threads that are enders, by pid and tid
  std::map<std::int32_t, proc::PythonHandlers> python_handlers_;  // by process
  std::map<std::pair<std::int32_t, std::int32_t>, proc::Object> objects_;  // by thread and descriptor
  std::map<std::uint64_t, std::optional<proc::Peer>> peers_;               // by the inode of the socket
  std::size_t polled_left_ = kMostPolledOfAll;
  std::optional<proc::SharedMemory> shared_;
  std::optional<std::multimap<std::int32_t, std::int32_t>> traced_;  // find_traced()
  Freezers freezers_;
  std::optional<WakerFinder> wakers_;  // made when needed, because its constructor takes time
};

}  // namespace

void find_waits(const files::Reader& reader, std::vector<Waiter>& waiters, const Tree& tree,
                proc::DescriptorTables& tables) {
  Search(reader, waiters, tree, tables).run();
}

std::vector<model::Zombie> find_zombies(std::int32_t pid) {
  std::vector<model::Zombie> zombies;
  for (const std::int32_t child : proc::read_children(pid)) {
    const auto stat = proc::read_stat(child);
    // A process whose first thread has ended also has the state Z. It still lives if its task list has other threads.
    const auto threads = proc::list_numbers(proc::proc_path(child, "task")).numbers;
    if (stat && stat->state == 'Z' && threads.size() <= 1)
      zombies.push_back({child, stat->comm, (stat->flags & proc::kForkedWithoutExec) != 0});
  }
  return zombies;
}

bool has_reaped(std::int32_t pid) {
  const auto stat = proc::read_stat(pid);
  return stat && stat->child_faults > 0;
}

std::optional<std::uint64_t> parse_write_calls(std::string_view io) {
  const auto field = proc::find_field(io, "syscw");
  const auto count = field ? proc::parse_decimal(*field) : std::nullopt;
  if (!count || *count < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*count);
}

}  // namespace forksight::watch
