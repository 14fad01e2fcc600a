#include "inspect/live_tree.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "image/live.hpp"
#include "image/stacks.hpp"
#include "image/stop.hpp"
#include "inspect/pthreads.hpp"
#include "inspect/spin_look.hpp"
#include "inspect/stuck_call.hpp"
#include "proc/batches.hpp"
#include "proc/last_run.hpp"
#include "proc/mappings.hpp"
#include "proc/own_process.hpp"
#include "proc/proc_fs.hpp"
#include "proc/process_memory.hpp"
#include "proc/thread_sample.hpp"
#include "proc/wait_class.hpp"
#include "watch/enders.hpp"
#include "watch/supervisor.hpp"
#include "watch/unheard_signals.hpp"

namespace forksight::inspect {
namespace {

using proc::ProcessKey;
using watch::Clock;

constexpr std::size_t kMostAncestors = 64;
constexpr std::size_t kMostLooked = 256;       // processes whose waits are shown
constexpr std::size_t kMostSeenThreads = 256;  // threads of each such process
constexpr std::size_t kMostIdle = 16;          // processes that are not stuck but whose stacks are read
constexpr std::size_t kMostBeside = 8;         // processes outside of the tree that hold the other end of a pipe
// A thread may be spinning if it runs, or is ready to run, at this many looks in a row.
constexpr int kSpinLooks = 6;
constexpr int kStopAttempts = 4;
// The largest number of further looks at the tree. A further look is taken if the looks so far decided nothing about
// some process.
constexpr int kFurtherLooks = 3;
constexpr std::chrono::milliseconds kSpinPace{80};  // the time between two looks

// Finds the ancestors in the same session. Ancestors outside of the session have started the job and are not part of
// the job.
std::vector<std::int32_t> find_ancestors(std::int32_t pid) {
  std::vector<std::int32_t> found;
  const pid_t session = ::getsid(pid);
  for (auto stat = proc::read_stat(pid); stat && found.size() < kMostAncestors;) {
    const std::int32_t parent = stat->ppid;
    if (parent <= 1 || ::getsid(parent) != session || proc::is_own_process(parent)) break;
    found.push_back(parent);
    stat = proc::read_stat(parent);
  }
  return found;
}

// Finds the processes of the same session whose descriptors the kernel does not show to forksight. Such a process may
// have inherited the same pipe as process `pid`, even if it is not an ancestor of process `pid`.
std::vector<ProcessKey> find_hidden_in_session(std::int32_t pid) {
  std::vector<ProcessKey> found;
  const pid_t session = ::getsid(pid);
  for (const std::int32_t other : proc::list_numbers("/proc").numbers) {
    if (other == pid || ::getsid(other) != session || proc::is_own_process(other) || proc::has_ended(other)) continue;
    const proc::ReadOutcome outcome = proc::try_links(proc::proc_path(proc::find_living_thread(other), "fd"));
    const auto stat = proc::read_stat(other);
    if (outcome == proc::ReadOutcome::kRefused && stat) found.push_back({other, stat->start_ticks});
  }
  return found;
}

// Returns the address at which the program of the process is mapped; 0: not known. This address usually differs each
// time that a program is started. A forked child has the same address as its parent.
std::uint64_t find_program(std::int32_t pid, const std::string& exe) {
  const std::vector<proc::Mapping> mappings = proc::read_mappings(proc::find_living_thread(pid));
  const auto first = std::ranges::find(mappings, exe, &proc::Mapping::path);
  return first != mappings.end() ? first->start : 0;
}

// Finds processes in the process group of process `pid` that did not start before process `pid`, and whose parent is in
// another group. Usually such a process has lost the parent that forked it. Then it is no longer a descendant of `pid`,
// but a descendant of `pid` may still wait for it.
std::vector<ProcessKey> find_parentless_in_group(std::int32_t pid) {
  std::vector<ProcessKey> found;
  const pid_t group = ::getpgid(pid);
  const auto root = proc::read_stat(pid);
  if (group <= 0 || !root) return found;
  for (const std::int32_t other : proc::list_numbers("/proc").numbers) {
    if (other == pid || proc::is_own_process(other) || ::getpgid(other) != group) continue;
    const auto stat = proc::read_stat(other);
    const bool is_younger = stat && stat->start_ticks >= root->start_ticks;
    if (is_younger && ::getpgid(stat->ppid) != group) found.push_back({other, stat->start_ticks});
  }
  return found;
}

class Look {
 public:
  Look(const files::Reader& reader, std::int32_t pid, const LiveTreeOptions& options)
      : reader_(reader), pid_(pid), options_(options), supervisor_(pid, Clock::duration::zero()) {}

  LiveTree take() {
    for (const ProcessKey& other : options_.others) asked_about_.insert(other.pid);
    asked_about_.insert(pid_);
    ancestors_ = find_ancestors(pid_);
    for (const std::int32_t ancestor : ancestors_) {
      const auto stat = proc::read_stat(ancestor);
      if (!stat) continue;
      const ProcessKey key{ancestor, stat->start_ticks};
      // A session leader in another process group usually is an interactive shell, which belongs to no job.
      const bool is_leader = ::getsid(pid_) == ancestor;
      if (is_leader && ::getpgid(ancestor) != ::getpgid(pid_)) {
        supervisor_.tree().adopt_outsider(key);
      } else {
        supervisor_.tree().adopt(key);
      }
    }
    for (const ProcessKey& other : options_.others) supervisor_.tree().adopt(other);
    for (const ProcessKey& other : find_parentless_in_group(pid_)) supervisor_.tree().adopt(other);
    // If forksight started the command, the command has inherited only objects that are open in forksight. Such objects
    // count as open outside of the tree anyway.
    if (!options_.started) {
      for (const ProcessKey& other : find_hidden_in_session(pid_)) supervisor_.tree().adopt_outsider(other);
    }
    supervisor_.set_own_signals(options_.own_signals);
    if (options_.started) supervisor_.set_started(*options_.started);
    poll();
    look_for_spinning();
    for (int again = 0; again < kFurtherLooks && is_undecided() && !supervisor_.tables().is_cut(); ++again) {
      std::this_thread::sleep_for(kSpinPace);
      poll();
    }
    // A thread that ran at each look of look_for_spinning() may sleep by now. If its process has a verdict by now, that
    // process does not count as spinning.
    for (const auto& [key, verdict] : supervisor_.verdicts()) spinning_.erase(key.pid);
    find_parents_of_stuck();
    choose();
    find_all_waits();
    note_rest();
    open_images();
    link();
    add_absent_parents(result_.subjects);
    // The report does not say that an ancestor could not be read, because nobody asked about the ancestor. If a process
    // could not be opened, another sentence of the report already says why.
    const std::vector<std::string> of_watch =
        supervisor_.limits([&](std::int32_t pid) { return generation_of(pid) >= 0 && !refused_.contains(pid); });
    result_.limits.insert(result_.limits.end(), of_watch.begin(), of_watch.end());
    return std::move(result_);
  }

 private:
  void poll() {
    supervisor_.poll_at_any_age(Clock::now());
    find_generations();
  }

  // Records for how long each stuck process has not run. Must be called before any thread is stopped, because after a
  // stop the threads seem to have run.
  void note_rest() {
    for (const auto& [key, verdict] : supervisor_.verdicts()) {
      auto rest = least_wait_of(key.pid);
      if (!rest) rest = proc::idle_time(key.pid);
      if (rest) rest_[key.pid] = *rest;
    }
  }

  // Returns for how long no thread of the process has run. nullopt: for at least one thread, this time is not known.
  std::optional<std::chrono::milliseconds> least_wait_of(std::int32_t pid) const {
    const auto round = rounds_.find(pid);
    const auto waits = waits_.find(pid);
    if (round == rounds_.end() || waits == waits_.end() || waits->second.size() != round->second.threads.size())
      return std::nullopt;
    std::optional<std::uint64_t> least;
    for (const model::Wait& wait : waits->second) {
      if (!wait.for_ms) return std::nullopt;
      least = std::min(least.value_or(*wait.for_ms), *wait.for_ms);
    }
    return least ? std::optional(std::chrono::milliseconds(*least)) : std::nullopt;
  }

  // Finds threads that are running at each of several looks. Such a thread may spin, or it may do work. The code that
  // the thread runs shows which of the two it does, but that code is known only when the images are open.
  void look_for_spinning() {
    std::map<std::int32_t, std::set<std::int32_t>> busy;
    const auto running = [&](std::int32_t pid) {
      std::set<std::int32_t> tids;
      const std::vector<std::int32_t> all = proc::list_numbers(proc::proc_path(pid, "task")).numbers;
      for (const std::int32_t tid : all) {
        const auto stat = proc::parse_stat(proc::read_file(proc::task_path(pid, tid, "stat")).text);
        if (stat && stat->state == 'R') tids.insert(tid);
      }
      return tids;
    };
    for (const auto& [pid, member] : supervisor_.tree().living()) {
      // forksight itself runs at each of its looks, so its own processes do not count.
      if (member.has_ended || supervisor_.verdicts().contains(member.key) || proc::is_own_process(pid)) continue;
      if (auto tids = running(pid); !tids.empty()) busy[pid] = std::move(tids);
    }
    for (int look = 1; look < kSpinLooks && !busy.empty(); ++look) {
      std::this_thread::sleep_for(kSpinPace);
      for (auto entry = busy.begin(); entry != busy.end();) {
        const auto now = running(entry->first);
        std::erase_if(entry->second, [&](std::int32_t tid) { return !now.contains(tid); });
        entry = entry->second.empty() ? busy.erase(entry) : std::next(entry);
      }
    }
    spinning_ = std::move(busy);
  }

  // True if another look is needed: the looks so far decided nothing about a process that was asked about, or about a
  // descendant of such a process. The process may have begun to hang only now. Or an earlier forksight command has
  // stopped the threads of the process for a moment. Then each thread runs briefly to begin its call again. On a busy
  // machine these runs take long.
  bool is_undecided() const {
    return std::ranges::any_of(supervisor_.tree().living(), [this](const auto& entry) {
      const ProcessKey& key = entry.second.key;
      return generation_of(key.pid) >= 0 && supervisor_.is_undecided(key) && !supervisor_.verdicts().contains(key) &&
             !spinning_.contains(key.pid);
    });
  }

  // Finds the generation of each process of the tree. Goes up from each process only to the first process whose
  // generation is known. So the time grows linearly with the number of processes, even if they form a long chain.
  void find_generations() {
    generations_.clear();
    const auto& living = supervisor_.tree().living();
    std::vector<std::int32_t> chain;
    for (const auto& [start, first] : living) {
      int generation = -1;
      for (std::int32_t pid = start;;) {
        if (is_asked_about(pid)) {
          generation = 0;
          break;
        }
        const auto member = living.find(pid);
        if (member == living.end()) break;
        // Each process of the chain is known from now on, at first with -1. So the loop ends even if the parents form a
        // ring because pids were used again.
        const auto [known, is_new] = generations_.try_emplace(pid, -1);
        generation = known->second;
        if (!is_new) break;
        chain.push_back(pid);
        pid = member->second.ppid;
      }
      for (; !chain.empty(); chain.pop_back()) {
        if (generation >= 0) ++generation;
        generations_[chain.back()] = generation;
      }
    }
  }

  // 0 for the process that was asked about and for `others`, 1 for their children, and so on. -1: the process descends
  // from none of these processes.
  int generation_of(std::int32_t pid) const {
    if (is_asked_about(pid)) return 0;
    const auto known = generations_.find(pid);
    return known == generations_.end() ? -1 : known->second;
  }

  bool is_asked_about(std::int32_t pid) const { return asked_about_.contains(pid); }

  bool is_ancestor(std::int32_t pid) const { return std::ranges::find(ancestors_, pid) != ancestors_.end(); }

  // Finds the ancestors of stuck processes (parents_of_stuck_). Also finds those ancestors whose memory a stuck process
  // has inherited by fork (gave_memory_to_stuck_). Not only parents count: a process may wait for a lock that a thread
  // of its grandparent held. After an exec, a process has nothing of its parent's memory.
  void find_parents_of_stuck() {
    const auto& living = supervisor_.tree().living();
    std::map<std::int32_t, bool> forked;
    const auto is_forked = [&forked](std::int32_t pid) {
      const auto [known, is_new] = forked.try_emplace(pid, false);
      if (is_new) {
        const auto stat = proc::read_stat(pid);
        known->second = stat && (stat->flags & proc::kForkedWithoutExec) != 0;
      }
      return known->second;
    };
    for (const auto& [pid, member] : living) {
      if (!is_stuck(member)) continue;
      bool has_memory = is_forked(pid);
      auto at = living.find(member.ppid);
      for (std::size_t steps = 0; at != living.end() && steps < kMostAncestors; ++steps) {
        parents_of_stuck_.insert(at->first);
        if (has_memory) gave_memory_to_stuck_.insert(at->first);
        has_memory = has_memory && is_forked(at->first);
        at = living.find(at->second.ppid);
      }
    }
  }

  bool has_stuck_child(std::int32_t pid) const { return parents_of_stuck_.contains(pid); }

  // True if the parent of the process waits in vfork() for this process. Each parent is read only once, because a
  // parent may have thousands of children.
  bool is_in_vfork(const watch::Member& member) {
    const auto [children, is_new] = vfork_children_.try_emplace(member.ppid);
    if (is_new) children->second = proc::find_vfork_children(member.ppid);
    return children->second.contains(member.key.pid);
  }

  // Chooses the processes to examine: the process that the user asked about, its descendants, and its ancestors that
  // are stuck or have a stuck descendant. Adds processes that wait for a chosen process, and processes for which a
  // chosen process waits.
  void choose() {
    std::set<std::int32_t> pids;
    for (const auto& [pid, member] : supervisor_.tree().living()) {
      if (proc::is_own_process(pid)) continue;  // forksight may descend from a process that the user asked about
      const int generation = generation_of(pid);
      const bool is_below = generation >= 0 && (options_.depth < 0 || generation <= options_.depth);
      if (is_below || (is_ancestor(pid) && (is_stuck(member) || has_stuck_child(pid)))) pids.insert(pid);
    }
    add_waiters_and_awaited(pids);
    for (const std::int32_t pid : pids) {
      const auto member = supervisor_.tree().living().find(pid);
      if (member == supervisor_.tree().living().end()) continue;
      index_.emplace(pid, chosen_.size());
      chosen_.push_back(member->second);
    }
  }

  // Adds the processes that wait for a process of `pids`, and those for which a process of `pids` waits, and so on.
  void add_waiters_and_awaited(std::set<std::int32_t>& pids) const {
    std::unordered_map<std::int32_t, std::vector<std::int32_t>> beside;
    for (const auto& [key, verdict] : supervisor_.verdicts()) {
      if (!verdict.waits_for || proc::is_own_process(verdict.waits_for->pid)) continue;
      beside[key.pid].push_back(verdict.waits_for->pid);
      beside[verdict.waits_for->pid].push_back(key.pid);
    }
    std::vector<std::int32_t> open(pids.begin(), pids.end());
    while (!open.empty()) {
      const auto others = beside.find(open.back());
      open.pop_back();
      if (others == beside.end()) continue;
      for (const std::int32_t other : others->second) {
        if (pids.insert(other).second) open.push_back(other);
      }
    }
  }

  // Finds the waits that the report shows. Must be called before any thread is stopped, because after a stop the
  // threads seem to have run.
  void find_all_waits() {
    for (const watch::Member& member : chosen_) {
      const bool is_told = generation_of(member.key.pid) >= 0 || supervisor_.verdicts().contains(member.key);
      if (is_told && pids_with_waits_.size() < kMostLooked) pids_with_waits_.insert(member.key.pid);
    }
    find_waits_of(pids_with_waits_);
    if (!options_.of_idle) return;
    // A process that has the other end of an awaited pipe, and never wrote to the pipe, may be the reason for the wait.
    // So the report also shows what that process waits for.
    std::set<std::int32_t> beside;
    for (const auto& [pid, waits] : waits_) {
      for (const model::Wait& wait : waits) {
        for (const model::Ender& ender : wait.enders) {
          const bool is_new = ender.via == "pipe" && ender.fd > 2 && !ender.may_have_written &&
                              !pids_with_waits_.contains(ender.pid) && !proc::is_own_process(ender.pid);
          if (is_new && beside.size() < kMostBeside) beside.insert(ender.pid);
        }
      }
    }
    std::erase_if(beside, [&](std::int32_t pid) { return !add_holder_outside_tree(pid); });
    find_waits_of(beside);
  }

  // The ended children of a process are read before its waits. So if a thread is seen in a wait, the thread waited
  // after these children had ended.
  void find_waits_of(const std::set<std::int32_t>& pids) {
    std::vector<watch::Waiter> waiters;
    const std::vector<std::int32_t> all(pids.begin(), pids.end());
    for (const auto some : proc::in_batches(std::span(all), proc::kReadTogether)) {
      for (const std::int32_t pid : some) zombies_[pid] = watch::find_zombies(pid);
      std::vector<proc::SampledRound> rounds = proc::sample_rounds(some);
      for (std::size_t i = 0; i < some.size(); ++i) {
        auto& round = rounds[i].round;
        if (!round) continue;
        for (std::size_t at = 0; at < round->threads.size() && at < kMostSeenThreads; ++at) {
          if (!round->threads[at].ended()) waiters.push_back({some[i], round->threads[at], {}});
        }
        rounds_.insert_or_assign(some[i], std::move(*round));
      }
    }
    supervisor_.tables().forget_if_cheap();
    watch::find_waits(reader_, waiters, supervisor_.tree(), supervisor_.tables());
    for (watch::Waiter& waiter : waiters) waits_[waiter.pid].push_back(std::move(waiter.wait));
  }

  // Adds a process outside of the tree. False if the process has ended, or was chosen already.
  bool add_holder_outside_tree(std::int32_t pid) {
    const auto stat = proc::read_stat(pid);
    if (index_.contains(pid) || !stat || proc::is_zombie(*stat)) return false;
    watch::Member member{.key = {pid, stat->start_ticks},
                         .ppid = stat->ppid,
                         .state = stat->state,
                         .comm = stat->comm,
                         .exe = proc::read_exe(pid),
                         .cmdline = proc::read_cmdline(pid)};
    index_.emplace(pid, chosen_.size());
    chosen_.push_back(std::move(member));
    return true;
  }

  // `waits` contains the waits that the verdict lists. Adds the waits of the latest look (`looked`). What the verdict
  // has proved about a wait stays.
  static void add_look(const std::vector<model::Wait>& looked, std::vector<model::Wait>& waits) {
    for (const model::Wait& look : looked) {
      const auto known = std::ranges::find(waits, look.tid, &model::Wait::tid);
      if (known == waits.end()) {
        waits.push_back(look);
        continue;
      }
      if (look.kind != known->kind && known->is_stuck) continue;  // the thread has gone on since the verdict
      model::Wait both = known->is_stuck ? std::move(*known) : look;
      both.call = look.call;
      both.target = look.target;
      both.for_ms = look.for_ms;
      both.enders = look.enders;
      both.are_enders_known = look.are_enders_known;
      both.woken_by = look.woken_by;
      both.is_unlinked = look.is_unlinked;
      both.semaphore = look.semaphore;
      *known = std::move(both);
    }
  }

  bool is_stuck(const watch::Member& member) const {
    return supervisor_.verdicts().contains(member.key) || spinning_.contains(member.key.pid);
  }

  // True if the process is awake although some of its threads are stuck for ever. Its other threads must not be
  // stopped.
  bool goes_on(const watch::Member& member) const {
    const auto verdict = supervisor_.verdicts().find(member.key);
    return verdict != supervisor_.verdicts().end() && verdict->second.liveness == model::Liveness::kAwake;
  }

  bool may_be_stopped(const watch::Member& member) const {
    const auto verdict = supervisor_.verdicts().find(member.key);
    const bool is_idle = verdict != supervisor_.verdicts().end() && !verdict->second.ways_out.empty();
    return !is_idle || !options_.may_stop_idle || options_.may_stop_idle(member.key.pid);
  }

  // True if the image of the process is needed: the process is stuck, the user asked about the process, or a descendant
  // of the process is stuck. Of the other processes, at most kMostIdle get an image. About processes without an image,
  // forksight uses only what /proc shows.
  bool is_needed(const watch::Member& member) const {
    return is_stuck(member) || is_asked_about(member.key.pid) || has_stuck_child(member.key.pid);
  }

  // False if the report loses nothing when the process cannot be opened: nobody asked about the process, it is not
  // stuck, and no stuck process has inherited its memory. Often this is a shell or `sudo`, which has started the
  // program.
  bool is_missed(const watch::Member& member) const {
    const std::int32_t pid = member.key.pid;
    return generation_of(pid) >= 0 || is_stuck(member) || gave_memory_to_stuck_.contains(pid);
  }

  void open_images() {
    std::vector<proc::ThreadsOf> processes;
    for (const watch::Member& member : chosen_) {
      const auto round = is_needed(member) ? rounds_.find(member.key.pid) : rounds_.end();
      processes.push_back(round == rounds_.end() ? proc::ThreadsOf{}
                                                 : proc::list_living(member.key.pid, round->second));
    }
    proc::MemoriesAhead ahead(std::move(processes));
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      if (options_.progress) options_.progress(i, chosen_.size());
      ahead.reach(i);
      const watch::Member& member = chosen_[i];
      Subject subject;
      subject.liveness = model::Liveness::kAwake;
      const bool may_be_idle = options_.of_idle && waits_.contains(member.key.pid);
      subject.is_idle = may_be_idle && (!is_stuck(member) || goes_on(member)) && idle_++ < kMostIdle;
      if (is_needed(member) || subject.is_idle) {
        image::LiveOptions live;
        live.stop = options_.stop && is_stuck(member) && may_be_stopped(member);
        live.threads = sample_if_stuck(i);
        if (goes_on(member)) {
          live.stop_only = [&](const image::Thread& thread) {
            const auto& waits = supervisor_.verdicts().at(member.key).waits;
            return std::ranges::find(waits, thread.tid, &model::Wait::tid) != waits.end();
          };
        }
        auto image = image::open_live(member.key.pid, live);
        if (image) {
          subject.image = std::move(image).value();
          stop_late_spinners(subject.image);
          if (!is_needed(member)) subject.image.limits.clear();  // nobody asked about this process
        } else if (is_needed(member)) {
          if (is_missed(member)) result_.limits.push_back(image.error());
          refused_.insert(member.key.pid);
        }
      }
      subject.is_asked_about = generation_of(member.key.pid) >= 0;
      subject.image.pid = member.key.pid;
      subject.image.ppid = member.ppid;
      subject.image.start_ticks = member.key.start_ticks;
      subject.image.exe = member.exe;
      subject.image.cmdline = member.cmdline;
      if (const auto stat = proc::read_stat(member.key.pid)) {
        subject.is_forked = (stat->flags & proc::kForkedWithoutExec) != 0;
        subject.is_in_vfork = *subject.is_forked && is_in_vfork(member);
        subject.image.has_two_numberings = *subject.is_forked && proc::has_numbers_of_two_namespaces(member.key.pid);
      }
      for (image::Thread& thread : subject.image.threads) {
        const auto stat = proc::parse_stat(proc::read_file(proc::task_path(member.key.pid, thread.tid, "stat")).text);
        if (stat) thread.start_ticks = stat->start_ticks;
      }
      if (subject.is_asked_about)
        result_.threads += proc::list_numbers(proc::proc_path(member.key.pid, "task")).numbers.size();
      judge(member, subject);
      if (const auto waits = waits_.find(member.key.pid); waits != waits_.end()) add_look(waits->second, subject.waits);
      if (const auto zombies = zombies_.find(member.key.pid); zombies != zombies_.end())
        subject.zombies = zombies->second;
      subject.has_reaped = watch::has_reaped(member.key.pid);
      result_.subjects.push_back(std::move(subject));
    }
    if (options_.progress) options_.progress(chosen_.size(), chosen_.size());
  }

  // Returns the threads of chosen_[index] if none of them can run any more. Also samples the next processes of chosen_
  // of which this is true.
  std::optional<proc::SampledThreads> sample_if_stuck(std::size_t index) {
    constexpr std::size_t kAtATime = 16;
    const auto is_at_rest = [&](const watch::Member& member) {
      return supervisor_.verdicts().contains(member.key) && !goes_on(member) && !spinning_.contains(member.key.pid);
    };
    if (!is_at_rest(chosen_[index])) return std::nullopt;
    const std::int32_t pid = chosen_[index].key.pid;
    if (!samples_.contains(pid)) {
      std::vector<proc::ThreadsOf> processes;
      for (std::size_t at = index; at < chosen_.size() && processes.size() < kAtATime; ++at) {
        const std::int32_t other = chosen_[at].key.pid;
        if (is_at_rest(chosen_[at]))
          processes.push_back({other, proc::list_numbers(proc::proc_path(other, "task")).numbers});
      }
      std::vector<proc::SampledThreads> sampled = proc::sample_threads(processes);
      for (std::size_t at = 0; at < processes.size(); ++at) samples_[processes[at].pid] = std::move(sampled[at]);
    }
    return std::move(samples_.extract(pid).mapped());
  }

  // Tries again to stop spinning threads. On a busy machine such a thread may get no processor, and then does not stop
  // in time.
  void stop_late_spinners(image::Image& image) const {
    const auto spinning = spinning_.find(image.pid);
    if (spinning == spinning_.end() || !options_.stop) return;
    const std::size_t limits = image.limits.size();
    for (int attempt = 0; attempt < kStopAttempts; ++attempt) {
      std::vector<std::int32_t> late;
      for (const image::Thread& thread : image.threads) {
        if (!thread.registers && spinning->second.contains(thread.tid)) late.push_back(thread.tid);
      }
      if (late.empty()) return;
      image.limits.resize(limits);  // only the last attempt reports what it could not do
      image::stop_and_read_registers(image, late);
    }
  }

  void judge(const watch::Member& member, Subject& subject) const {
    const auto verdict = supervisor_.verdicts().find(member.key);
    if (verdict != supervisor_.verdicts().end()) {
      subject.liveness = verdict->second.liveness;
      subject.waits = verdict->second.waits;
      subject.ways_out = verdict->second.ways_out;
      subject.may_be_timed_out = verdict->second.may_be_timed_out;
      if (verdict->second.waits_for) {
        const auto target = index_.find(verdict->second.waits_for->pid);
        if (target != index_.end()) subject.waits_for = target->second;
        subject.waits_via = verdict->second.via;
      }
      if (goes_on(member)) return;
      subject.unheard_signals = find_unheard(member.key.pid);
    } else if (spinning_.contains(member.key.pid) && is_in_hazard(subject)) {
      subject.liveness = model::Liveness::kSpinning;
    } else {
      return;
    }
    const auto rest = rest_.find(member.key.pid);
    if (rest != rest_.end()) subject.stuck_for_ms = static_cast<std::uint64_t>(rest->second.count());
  }

  std::uint64_t find_unheard(std::int32_t pid) const {
    constexpr std::uint64_t kAll = ~std::uint64_t{0};
    if (const auto known = rounds_.find(pid); known != rounds_.end()) return watch::find_unheard(known->second, kAll);
    bool refused = false;
    const auto round = proc::sample_round(pid, refused);
    return round ? watch::find_unheard(*round, kAll) : 0;
  }

  // True if a running thread seems to stay for ever in an atfork handler, at a spinlock, in a libc call that takes a
  // lock, in a parallel region, or in a library that spins until the threads of its team come.
  bool is_in_hazard(const Subject& subject) const {
    image::Stacks stacks(subject.image);
    std::vector<Spinner> spinners;
    for (const image::Thread& thread : subject.image.threads) {
      if (!spinning_.at(subject.image.pid).contains(thread.tid) || !thread.registers) continue;
      const StuckCall call =
          recognise(thread, stacks.of(thread), make_callee_of(subject.image, stacks.symbols()), subject.image.libc);
      const bool may_spin = call.is_in_fork || call.kind == CallKind::kSpinlock || call.kind == CallKind::kParallel ||
                            call.kind == CallKind::kLibcCall ||
                            (!call.stack.frames.empty() &&
                             model::spins_for_team(model::find_owner_of_library(call.stack.frames.front().module)));
      if (may_spin) spinners.push_back({thread.tid, call.kind == CallKind::kSpinlock ? call.object : 0});
    }
    return any_stays_in_place(subject.image, spinners);
  }

  // True if both processes run the same program at the same address. Reads the mappings of `parent` once, because a
  // parent may have thousands of children.
  bool runs_the_same(std::int32_t pid, std::int32_t parent) {
    const std::string exe = proc::read_exe(pid);
    if (exe.empty() || proc::read_exe(parent) != exe) return false;
    const auto [there, is_new] = programs_.try_emplace(parent, 0);
    if (is_new) there->second = find_program(parent, exe);
    return there->second != 0 && find_program(pid, exe) == there->second;
  }

  void link() {
    for (std::size_t i = 0; i < result_.subjects.size(); ++i) {
      Subject& subject = result_.subjects[i];
      const auto parent = index_.find(subject.image.ppid);
      const bool is_linked =
          parent != index_.end() && result_.subjects[parent->second].image.memory && is_needed(chosen_[parent->second]);
      if (is_linked) subject.parent = parent->second;
      const bool is_copy = is_linked && is_same_layout(subject.image, result_.subjects[parent->second].image);
      subject.image.has_other_parent =
          !is_copy && is_stuck(chosen_[i]) && !runs_the_same(subject.image.pid, subject.image.ppid);
    }
    // If pthread_self() of the first thread of a parent is not known, this value is learned from a child. The loop is
    // repeated, because the value of that child may first have to be learned from a grandchild.
    bool learns = true;
    for (std::size_t round = 0; learns && round < kMostAncestors; ++round) {
      learns = false;
      for (const Subject& child : result_.subjects) {
        if (!child.parent || child.is_forked == false || child.is_in_vfork) continue;
        image::Image& parent = result_.subjects[*child.parent].image;
        const auto first = std::ranges::find(parent.threads, parent.pid, &image::Thread::tid);
        const bool was_unknown = first != parent.threads.end() && first->fs_base == 0;
        if (!was_unknown || !is_same_layout(child.image, parent)) continue;
        find_pointer_by_child(parent, child.image);
        learns = learns || first->fs_base != 0;
      }
    }
  }

  const files::Reader& reader_;
  std::int32_t pid_;
  const LiveTreeOptions& options_;
  watch::Supervisor supervisor_;
  std::map<std::int32_t, proc::Round> rounds_;               // by pid, of each process whose waits are read
  std::map<std::int32_t, std::chrono::milliseconds> rest_;   // by pid
  std::map<std::int32_t, std::set<std::int32_t>> spinning_;  // tids by pid
  std::unordered_set<std::int32_t> asked_about_;             // the process and `others` of the options
  std::unordered_map<std::int32_t, int> generations_;        // by pid, of the latest look; see generation_of()
  std::unordered_set<std::int32_t> parents_of_stuck_;        // see find_parents_of_stuck()
  std::unordered_set<std::int32_t> gave_memory_to_stuck_;    // see find_parents_of_stuck()
  std::unordered_map<std::int32_t, std::set<std::int32_t>> vfork_children_;  // by parent
  std::unordered_map<std::int32_t, std::uint64_t> programs_;                 // by pid, as from find_program()
  std::vector<std::int32_t> ancestors_;
  std::vector<watch::Member> chosen_;
  std::map<std::int32_t, std::size_t> index_;  // by pid
  std::set<std::int32_t> pids_with_waits_;
  std::map<std::int32_t, proc::SampledThreads> samples_;    // by pid, of the next processes of which images are opened
  std::map<std::int32_t, std::vector<model::Wait>> waits_;  // by pid, as they were before anything was stopped
  std::map<std::int32_t, std::vector<model::Zombie>> zombies_;  // by pid, read before the waits
  std::set<std::int32_t> refused_;                              // processes that could not be opened
  std::size_t idle_ = 0;                                        // how many processes that are not stuck have an image
  LiveTree result_;
};

}  // namespace

Result<LiveTree> look_at_tree(const files::Reader& reader, std::int32_t pid, const LiveTreeOptions& options) {
  image::LiveOptions no_stop;
  no_stop.stop = false;
  if (const auto first = image::open_live(pid, no_stop); !first) return Error{first.error()};
  return Look(reader, pid, options).take();
}

}  // namespace forksight::inspect
