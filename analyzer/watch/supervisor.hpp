// Looks at the processes of a tree through /proc, at a steady pace, and finds the processes that will never run again.
//  A look at a healthy process costs two small reads: its stat, and the state of the thread that showed the process to
//  be awake the last time. All threads are sampled only if that thread is no longer awake. A process is a candidate if
//  all its threads have been blocked, and none has run, for a short time. A candidate is a suspect if no process is
//  known that is awake and could wake the candidate. The proof (proof.hpp) costs more, so it is tried only for
//  suspects.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/model.hpp"
#include "proc/descriptor_tables.hpp"
#include "proc/memory_sharers.hpp"
#include "proc/proc_fs.hpp"
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
  // One of kDead, kDeadButForSignal, kSpinning, kStalled, kVictim and kAwake. kAwake: the process is awake, but some of
  // its threads are stuck (Wait::is_stuck), or it has unheard signals.
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

// A call that has not returned, and of which it is not known whether it ever returns.
struct StalledCall {
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  Clock::time_point since;
};

// A signal that the shim handles in a process, and the address at which the shim is mapped there. If the shim is no
// longer mapped at that address, the process has called exec, and the shim's handler is gone.
struct OwnSignal {
  int signal = 0;
  std::uint64_t shim_start = 0;
};

class Supervisor {
 public:
  // A process counts as spinning when one of its threads has been spinning for `spin_age`. A proof of a hang does not
  // depend on how long the process has waited. Verdict::since shows when the wait began.
  Supervisor(std::int32_t root, Clock::duration spin_age);

  // Looks at the tree once. Meant to be called every quarter of a second.
  void poll(Clock::time_point now) { look(now, kSettled); }
  // Like poll(), but also examines processes whose threads have been blocked only for a moment. Meant for the last look
  // before the processes end or change.
  void poll_at_any_age(Clock::time_point now) { look(now, Clock::duration::zero()); }

  // Notes that forksight started this process, and that it has called exec. So only its descendants can share the
  // memory of one of them.
  void set_started(const proc::ProcessKey& root) { started_ = root; }

  void set_touches(const std::vector<OpenTouch>& touches) { spins_.follow(touches); }

  // Sets the signal that the shim handles in each process, by pid. The handler of that signal wakes no thread, so the
  // signal is no way out of a wait.
  void set_own_signals(std::map<std::int32_t, OwnSignal> signals) { own_signals_ = std::move(signals); }
  const std::map<std::int32_t, OwnSignal>& own_signals() const { return own_signals_; }
  // Notes that forksight has sent this process the signal that the shim handles there. The threads of the process run
  // for a moment because of that signal. This run does not count as progress if the next look finds the threads in the
  // same calls as before.
  void expect_own_wakeup(const proc::ProcessKey& key);
  // Sets the calls that may be stalled: calls of atfork handlers that have not returned, and waits for timers that the
  // process does not have. A call that lasts very long counts as stalled.
  void set_stalled(const std::vector<StalledCall>& calls) { calls_ = calls; }
  // Sets the signals that the lost threads of each forked process took, by the pid of the forked process.
  void set_lost_signals(std::map<std::int32_t, std::uint64_t> lost) { unheard_.set_lost(std::move(lost)); }

  Tree& tree() { return tree_; }
  const Tree& tree() const { return tree_; }
  // The verdicts of the latest poll. An awake process has a verdict only if some of its threads are stuck, or if it has
  // unheard signals.
  const std::map<proc::ProcessKey, Verdict>& verdicts() const { return verdicts_; }
  // True if at the latest look some thread of the process ran, or was in a wait that may end because of a timeout or of
  // something that forksight does not examine. Also true for a process that is not watched, that could not be read, or
  // whose threads have all ended.
  bool was_awake(const proc::ProcessKey& key) const;
  // True if the latest look decided nothing about the process, and another look may decide something. The reason is
  // that a thread was running, that a thread ran while the process was examined, or that something could not be read.
  bool is_undecided(const proc::ProcessKey& key) const;
  // The descriptor tables that the latest look has read.
  proc::DescriptorTables& tables() { return tables_; }
  // Returns one sentence for each thing that forksight could not see. A process that could not be read is named only if
  // `is_told` is true for its pid, or if its descriptors may matter for a wait.
  std::vector<std::string> limits(const std::function<bool(std::int32_t pid)>& is_told) const;
  // Processes that the kernel repeatedly did not let forksight look at, with the name of the program.
  const std::map<proc::ProcessKey, std::string>& unreadable() const { return unreadable_; }

 private:
  struct Watched {
    proc::ProcessKey key;
    std::int32_t witness = 0;   // the thread that showed the process to be awake
    bool is_undecided = false;  // as in is_undecided()
    int refusals = 0;           // number of successive looks that the kernel refused
    proc::Round last;           // the latest round, if all threads were blocked; empty: awake, ending or not readable
    Clock::time_point since;    // the threads have been as in `last` since that time
    Clock::time_point next_look;
    bool woken_by_us = false;             // since `last`, forksight made the process run for a moment
    bool is_not_provable = false;         // no proof is possible while `last` stays the same
    Clock::duration rest_before_proof{};  // grows each time that the proof fails
    Clock::time_point next_proof{};
    std::optional<Proof> proof;
    std::vector<WaitFacts> facts;
    // `proof` is still valid, but according to `facts` an awake process could wake this process
    bool has_live_waker = false;
  };

  struct GilSearch {
    GilObservations seen;
    Clock::time_point since;  // successive searches have decided nothing since that time
  };

  // If the threads of a process have been blocked for a shorter time than this, the process usually goes on soon. So a
  // proof is not tried for it.
  static constexpr Clock::duration kSettled = std::chrono::milliseconds(200);

  // True if something could not be read in the present look. Between two looks, true if something could not be read in
  // the latest look.
  bool lacks_facts() const;
  void look(Clock::time_point now, Clock::duration age);
  void sample_all(Clock::time_point now, bool at_once);
  bool is_round_due(const Member& member, Clock::time_point now, bool at_once);
  void note_round(const Member& member, proc::SampledRound sampled, Clock::time_point now);
  std::vector<std::int32_t> find_suspects(const std::vector<std::int32_t>& candidates, Clock::time_point now,
                                          bool at_once);
  void prove_stuck(const std::vector<std::int32_t>& suspects, Clock::time_point now, bool at_once);
  void finish_proof(ProcessEvidence& evidence, Clock::time_point now, Clock::duration least_rest);
  ProcessEvidence read_evidence(const Watched& watched, proc::MemorySharers& memories, Freezers& freezers);
  static ProcessWaits waits_of(const Watched& watched);
  std::uint64_t own_signals_of(std::int32_t pid) const;
  // For each of `parents`: the signals that it receives when its living children end, without the children in `stuck`.
  // Bit 0 is signal 1. Usually this is SIGCHLD.
  std::map<std::int32_t, std::uint64_t> find_signals_of_children(const std::set<std::int32_t>& parents,
                                                                 const std::set<std::int32_t>& stuck) const;
  // Meant for a process that is awake or spins. True if one of `threads` would run a handler for a signal that arrives
  // without a sender: because of a timer, a descriptor, or the end of a child. If other threads of the process go on,
  // any handler counts, because one of these threads may send the signal.
  bool may_be_timed_out(std::int32_t pid, const std::vector<proc::ThreadSample>& threads, bool others_go_on);
  // Describes the way out that process `pid` has: "a handler of SIGTERM". Also names the process, unless `is_own`.
  std::string describe_way_out(std::int32_t pid, bool is_own) const;
  void conclude(const std::vector<std::int32_t>& suspects);
  void forget_live_wakers();
  void add_spinning(Clock::time_point now);
  void add_stalled(Clock::time_point now);
  void add_partly_stuck(Clock::time_point now, bool at_once);
  // Looks for stuck threads of one process, and updates `partly_`.
  void search_partly_stuck(const proc::ProcessKey& key, Clock::time_point now, bool at_once);
  void add_unheard(Clock::time_point now);

  Tree tree_;
  std::optional<proc::ProcessKey> started_;
  Clock::duration spin_age_;
  std::map<std::int32_t, Watched> watched_;
  std::map<proc::ProcessKey, Verdict> verdicts_;
  proc::DescriptorTables tables_;
  WakerFinder wakers_{tables_};
  Clock::time_point next_proof_of_live_wakers_{};  // when to prove again the processes that have a live waker
  SpinWatch spins_;
  std::vector<StalledCall> calls_;
  UnheardSignals unheard_;
  std::map<proc::ProcessKey, Verdict> partly_;          // processes with some stuck threads, from the latest search
  std::map<proc::ProcessKey, StuckThreads> gil_rings_;  // the stuck threads of that search, if one waits for a GIL
  std::map<proc::ProcessKey, GilSearch> gil_searches_;  // processes with threads that may wait for a GIL in a ring
  Clock::time_point next_search_{};
  std::map<proc::ProcessKey, std::string> unreadable_;  // the program of each process
  std::map<std::int32_t, OwnSignal> own_signals_;       // by pid
  bool sharing_unknown_ = false;
  std::map<proc::ProcessKey, std::int32_t> possible_sharers_;  // as in ProcessEvidence, from the latest proofs
  // True if a limit applied at any look: the number of possible wakers, the number of polled descriptors, or the time to
  // read descriptors. `run` reports its limits only when the job has ended.
  bool had_too_many_wakers_ = false;
  bool had_too_many_polled_ = false;
  bool has_left_out_descriptors_ = false;
  std::uint64_t failures_before_look_ = 0;  // the value of proc::count_failures() before the latest look
};

}  // namespace forksight::watch
