// Looks at a process tree from outside, at a steady pace, and determines which of its processes will never go on.
//  A look at a healthy process costs two small reads: its stat, and the one thread that showed it to be awake the last
//  time. Only if that thread is no longer awake, all threads are sampled. Only a process that has not moved from one
//  look to the next is a candidate. Only candidates that, as far as is known, no process could wake are put to the
//  proof (proof.hpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/model.hpp"
#include "proc/proc_fs.hpp"
#include "proc/process_traits.hpp"
#include "proc/thread_sample.hpp"
#include "watch/evidence.hpp"
#include "watch/proof.hpp"
#include "watch/spin.hpp"
#include "watch/stuck_threads.hpp"
#include "watch/thread_graph.hpp"
#include "watch/tree.hpp"
#include "watch/unheard_signals.hpp"
#include "watch/wakers.hpp"
#include "watch/ways_out.hpp"

namespace forksight::watch {

using Clock = std::chrono::steady_clock;

struct Verdict {
  proc::ProcessKey key;
  // kDead, kDeadButForSignal, kSpinning, kStalled or kVictim. kAwake: only the threads of `waits` are stuck.
  model::Liveness liveness = model::Liveness::kUnknown;
  Clock::time_point since;
  std::vector<model::Wait> waits;
  std::optional<proc::ProcessKey> waits_for;
  std::string via;
  std::vector<std::string> ways_out;  // as in model::Process
  bool may_be_timed_out = false;      // as in model::Process
  std::uint64_t unheard_signals = 0;  // as in model::Process
  Clock::time_point unheard_since;
};

// A call that does not return, and about which no more is known.
struct StalledCall {
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  Clock::time_point since;
};

// The shim answers this signal as long as it is mapped in the process: after an exec other handlers are in force.
struct OwnSignal {
  int signal = 0;
  std::uint64_t shim_start = 0;
};

class Supervisor {
 public:
  // A process counts as spinning after `spin_age`. A proof does not depend on time: Verdict::since shows when the wait
  // began.
  Supervisor(std::int32_t root, Clock::duration spin_age);

  // One look at the tree. Meant to be called every quarter of a second.
  void poll(Clock::time_point now) { look(now, kSettled); }
  // The same, but a process that came to rest a moment ago counts, too: the last look before the evidence disappears.
  void poll_at_any_age(Clock::time_point now) { look(now, Clock::duration::zero()); }

  void set_touches(const std::vector<OpenTouch>& touches) { spins_.follow(touches); }

  // Signals that the shim handles in the process with that pid. Their handlers wake nobody, so they are no way out of a
  // wait.
  void set_own_signals(std::map<std::int32_t, OwnSignal> signals) { own_signals_ = std::move(signals); }
  const std::map<std::int32_t, OwnSignal>& own_signals() const { return own_signals_; }
  // forksight has sent such a signal to this process. If its threads are found in the same calls afterwards, having
  // been scheduled once does not count as progress.
  void expect_own_wakeup(const proc::ProcessKey& key);
  // Threads that are inside of an atfork handler, or that wait for a timer that they do not have, and since when. Long
  // ones count as stalled.
  void set_stalled(const std::vector<StalledCall>& calls) { calls_ = calls; }
  // Signals that were taken by threads which forked processes do not have, by the pid of these processes.
  void set_lost_signals(std::map<std::int32_t, std::uint64_t> lost) { unheard_.set_lost(std::move(lost)); }

  Tree& tree() { return tree_; }
  const Tree& tree() const { return tree_; }
  // Everything that is stuck as of the latest poll.
  const std::map<proc::ProcessKey, Verdict>& verdicts() const { return verdicts_; }
  // At the latest look some thread of the process ran, or waited for something that time or another process may end.
  bool was_awake(const proc::ProcessKey& key) const;
  // What forksight could not see, one sentence each.
  std::vector<std::string> limits() const;
  // Processes that the kernel repeatedly did not let forksight look at, with the name of the program.
  const std::map<proc::ProcessKey, std::string>& unreadable() const { return unreadable_; }

 private:
  struct Watched {
    proc::ProcessKey key;
    std::int32_t witness = 0;  // the thread that showed the process to be awake
    int refusals = 0;          // successive looks that the kernel refused
    proc::Round last;          // all threads blocked; empty: awake
    Clock::time_point since;   // `last` has not changed since
    Clock::time_point next_look;
    bool woken_by_us = false;             // forksight made it run for a moment, since `last`
    bool hopeless = false;                // no proof is possible while `last` stays the same
    Clock::duration rest_before_proof{};  // grows with each proof that failed
    Clock::time_point next_proof{};
    std::optional<Proof> proof;
    std::vector<WaitFacts> facts;
    // according to `facts`: the proof names who could wake it, and one of these is awake
    bool has_live_waker = false;
  };

  // Most processes that have rested for less than this are about to go on: they are not worth a proof.
  static constexpr Clock::duration kSettled = std::chrono::milliseconds(200);

  void look(Clock::time_point now, Clock::duration age);
  void look_at(const Member& member, Clock::time_point now, bool at_once);
  std::vector<std::int32_t> find_suspects(const std::vector<std::int32_t>& candidates, Clock::time_point now,
                                          bool at_once);
  void put_to_proof(const std::vector<std::int32_t>& suspects, Clock::time_point now, bool at_once);
  ProcessEvidence gather(const Watched& watched, proc::MemorySharers& memories, Freezers& freezers);
  static ProcessWaits waits_of(const Watched& watched);
  std::uint64_t own_signals_of(std::int32_t pid) const;
  // A child that is not among `stuck` may end and send the process a SIGCHLD.
  bool has_child_beside(std::int32_t pid, const std::set<std::int32_t>& stuck) const;
  // Threads of a process that goes on or spins may run such a handler.
  bool may_be_timed_out(std::int32_t pid, const std::vector<proc::ThreadSample>& threads) const;
  // For a process that has a way out.
  std::string describe_way_out(std::int32_t pid, bool is_own) const;
  void conclude(const std::vector<std::int32_t>& suspects);
  void forget_live_wakers();
  void add_spinning(Clock::time_point now);
  void add_stalled(Clock::time_point now);
  void add_partly_stuck(Clock::time_point now, bool at_once);
  void add_unheard(Clock::time_point now);

  Tree tree_;
  Clock::duration spin_age_;
  std::map<std::int32_t, Watched> watched_;
  std::map<proc::ProcessKey, Verdict> verdicts_;
  WakerFinder wakers_;
  Clock::time_point next_question_{};  // when to ask again who could wake the processes that have a live waker
  SpinWatch spins_;
  std::vector<StalledCall> calls_;
  UnheardSignals unheard_;
  std::map<proc::ProcessKey, Verdict> partly_;          // from the latest search
  std::map<proc::ProcessKey, StuckThreads> gil_rings_;  // from that search: the stuck threads, if one waits for a GIL
  Clock::time_point next_search_{};
  std::map<proc::ProcessKey, std::string> unreadable_;  // program
  std::map<std::int32_t, OwnSignal> own_signals_;       // by pid
  bool sharing_unknown_ = false;
};

}  // namespace forksight::watch
