#include "watch/supervisor.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <span>
#include <utility>

#include "files/budgets.hpp"
#include "proc/batches.hpp"
#include "proc/memory_sharers.hpp"
#include "proc/proc_fs.hpp"
#include "proc/process_memory.hpp"
#include "proc/process_traits.hpp"
#include "proc/python_interrupt.hpp"
#include "proc/thread_sample.hpp"
#include "proc/wait_class.hpp"
#include "watch/cost.hpp"
#include "watch/describe_wait.hpp"
#include "watch/futex_lookup.hpp"
#include "watch/own_timers.hpp"
#include "watch/proof.hpp"
#include "watch/sharers.hpp"
#include "watch/stuck_threads.hpp"
#include "watch/thread_graph.hpp"
#include "watch/wait_graph.hpp"
#include "watch/ways_out.hpp"

namespace forksight::watch {
namespace {

constexpr std::size_t kMostNamed = 8;            // processes that one sentence names
constexpr int kRefusalsThatCount = 4;            // refusals in a row; an exec causes fewer
constexpr int kStalledFactor = 10;               // a stalled call counts after this many times the spin age
constexpr std::chrono::seconds kLongestRest{2};  // the longest time between two rounds of samples
// To collect evidence, forksight may have to look at all processes of the machine. The collection takes at most
// 1/kProofShare of the time.
constexpr int kProofShare = 100;

// Notes which handlers a Python program has. The tree keeps the program that the process had when forksight found the
// process. The process, for example a shell, may have called exec since.
void read_python_handlers(std::int32_t pid, std::int32_t tid, ProcessEvidence& evidence) {
  if (!is_python_program(proc::read_exe(pid))) return;
  const auto handlers = proc::read_python_handlers(tid).value_or(proc::PythonHandlers{true, false});
  evidence.has_python_interrupt = handlers.has_default_interrupt;
  evidence.has_python_abort_handler = handlers.handles_abort;
}

// True if a process of clone(CLONE_VM) may use the memory of this process, and so its locks.
bool has_other_users(std::int32_t pid, std::int32_t tid, const std::optional<proc::ProcessKey>& root) {
  std::vector<std::int32_t> sharers;
  const proc::Sharing sharing = proc::MemorySharers(root).find(pid, tid, sharers);
  return sharing == proc::Sharing::kShared && (sharers.empty() || !find_other_users(pid, sharers).empty());
}

// True if both rounds have the same threads in the same states and calls. Their context switch counts may differ.
bool is_same_but_scheduled(const proc::Round& before, const proc::Round& after) {
  return std::equal(before.threads.begin(), before.threads.end(), after.threads.begin(), after.threads.end(),
                    [](const proc::ThreadSample& one, const proc::ThreadSample& other) {
                      return one.tid == other.tid && one.ended() == other.ended() &&
                             (one.ended() || (one.status.state == other.status.state && one.call == other.call));
                    });
}

// Returns the tid of a thread whose state proves that its process is awake; 0: there is no such thread. Sets
// `all_ended` if all threads have ended, which means that the process is ending. Sets `runs` if the thread that was
// found is running.
std::int32_t find_witness(const proc::Round& round, bool& all_ended, bool& runs) {
  all_ended = true;
  runs = false;
  for (const proc::ThreadSample& thread : round.threads) {
    const proc::WaitClass kind = proc::classify(thread).kind;
    if (kind == proc::WaitClass::kAwakable) {
      runs = thread.status.state == 'R';
      return thread.tid;
    }
    if (kind != proc::WaitClass::kEnded) all_ended = false;
  }
  return 0;
}

}  // namespace

Supervisor::Supervisor(std::int32_t root, Clock::duration spin_age) : tree_(root), spin_age_(spin_age) {}

void Supervisor::look(Clock::time_point now, Clock::duration age) {
  failures_before_look_ = proc::count_failures();
  // The looks at any age are repeated at once, and have one time together.
  if (age == Clock::duration::zero()) {
    tables_.forget();
  } else {
    tables_.renew();
  }
  wakers_.begin_look();
  tree_.refresh([this](std::int32_t pid) {
    const auto watched = watched_.find(pid);
    const bool rests = watched != watched_.end() && !watched->second.last.threads.empty();
    return rests ? watched->second.since : Clock::time_point::max();
  });
  sample_all(now, age == Clock::duration::zero());
  std::erase_if(watched_, [&](const auto& entry) { return !tree_.living().contains(entry.first); });

  std::vector<std::int32_t> candidates;
  for (const auto& [pid, watched] : watched_) {
    const bool is_blocked = !watched.last.threads.empty() && !watched.is_not_provable;
    if (is_blocked && now - watched.since >= age) candidates.push_back(pid);
  }
  const bool at_once = age == Clock::duration::zero();
  if (at_once || now >= next_proof_of_live_wakers_) forget_live_wakers();
  const std::vector<std::int32_t> suspects = find_suspects(candidates, now, at_once);
  prove_stuck(suspects, now, at_once);
  conclude(suspects);
  spins_.look(now);
  add_spinning(now);
  add_stalled(now);
  add_partly_stuck(now, age == Clock::duration::zero());
  add_unheard(now);
  had_too_many_wakers_ = had_too_many_wakers_ || wakers_.has_too_many();
  had_too_many_polled_ = had_too_many_polled_ || wakers_.has_polled_too_many();
  has_left_out_descriptors_ = has_left_out_descriptors_ || tables_.is_cut();
}

void Supervisor::sample_all(Clock::time_point now, bool at_once) {
  std::vector<const Member*> due;
  for (const auto& [pid, member] : tree_.living()) {
    if (is_round_due(member, now, at_once)) due.push_back(&member);
  }
  for (const auto some : proc::in_batches(std::span(due), proc::kReadTogether)) {
    std::vector<std::int32_t> pids;
    for (const Member* const member : some) pids.push_back(member->key.pid);
    std::vector<proc::SampledRound> rounds = proc::sample_rounds(pids);
    for (std::size_t at = 0; at < some.size(); ++at) note_round(*some[at], std::move(rounds[at]), now);
  }
}

bool Supervisor::is_round_due(const Member& member, Clock::time_point now, bool at_once) {
  Watched& watched = watched_[member.key.pid];
  if (watched.key != member.key) {
    watched = Watched{};
    watched.key = member.key;
  }
  if (member.has_ended) {
    watched.last.threads.clear();
    watched.witness = 0;
    watched.is_undecided = false;
    return false;
  }
  if (watched.witness != 0 && proc::is_awake(member.key.pid, watched.witness)) return false;
  return watched.last.threads.empty() || now >= watched.next_look || at_once;
}

void Supervisor::note_round(const Member& member, proc::SampledRound sampled, Clock::time_point now) {
  Watched& watched = watched_.at(member.key.pid);
  std::optional<proc::Round>& round = sampled.round;
  watched.refusals = sampled.is_refused ? watched.refusals + 1 : 0;
  if (watched.refusals >= kRefusalsThatCount) unreadable_[member.key] = member.exe.empty() ? member.comm : member.exe;
  bool all_ended = false;
  watched.witness = round ? find_witness(*round, all_ended, watched.is_undecided) : 0;
  if (!round) watched.is_undecided = true;
  if (!round || watched.witness != 0 || all_ended) {
    watched.last.threads.clear();
    return;
  }
  if (!watched.last.threads.empty() && is_same_round(watched.last, *round)) {
    watched.last = std::move(*round);  // in the new round a signal may be pending that was not pending before
    watched.next_look = now + std::min<Clock::duration>((now - watched.since) / 2, kLongestRest);
    return;
  }
  const bool is_our_doing = watched.woken_by_us && is_same_but_scheduled(watched.last, *round);
  watched.woken_by_us = false;
  watched.last = std::move(*round);
  if (!is_our_doing) watched.since = now;
  watched.next_look = now;
  watched.is_not_provable = false;
  watched.rest_before_proof = {};
  watched.next_proof = {};
  watched.proof.reset();
  watched.has_live_waker = false;
}

// Forgets the proofs of processes that have a live waker, so that new proofs are tried. Does so for all these processes
// at once, because they may wait for each other.
void Supervisor::forget_live_wakers() {
  for (auto& [pid, watched] : watched_) {
    if (!watched.has_live_waker) continue;
    watched.proof.reset();
    watched.has_live_waker = false;
  }
}

void Supervisor::expect_own_wakeup(const proc::ProcessKey& key) {
  const auto watched = watched_.find(key.pid);
  if (watched != watched_.end() && watched->second.key == key) watched->second.woken_by_us = true;
}

bool Supervisor::was_awake(const proc::ProcessKey& key) const {
  const auto watched = watched_.find(key.pid);
  return watched == watched_.end() || watched->second.key != key || watched->second.last.threads.empty();
}

bool Supervisor::lacks_facts() const { return !wakers_.is_whole() || proc::count_failures() != failures_before_look_; }

bool Supervisor::is_undecided(const proc::ProcessKey& key) const {
  const auto watched = watched_.find(key.pid);
  if (watched == watched_.end() || watched->second.key != key) return false;
  return watched->second.is_undecided || lacks_facts() || !wakers_.refused().empty() ||
         !wakers_.hidden_descendants().empty();
}

// Returns the candidates that no awake process could wake, according to the latest rounds. Takes no new samples.
std::vector<std::int32_t> Supervisor::find_suspects(const std::vector<std::int32_t>& candidates, Clock::time_point now,
                                                    bool at_once) {
  std::vector<std::int32_t> suspects;
  if (candidates.empty()) return suspects;
  std::map<std::int32_t, std::size_t> node_of;
  for (const std::int32_t pid : candidates) node_of.emplace(pid, node_of.size());

  std::map<std::int32_t, bool> ended;  // of the processes that were asked about
  const auto has_ended = [&](std::int32_t pid) {
    const auto member = tree_.living().find(pid);
    if (member != tree_.living().end() && member->second.state != 'Z') return false;
    const auto [known, is_new] = ended.try_emplace(pid);
    if (is_new) known->second = proc::has_ended(pid);
    return known->second;
  };
  std::vector<Node> nodes;
  std::set<std::int32_t> asking;  // the candidates whose waits depend on a scan
  bool wants_scan = false;
  bool lacks_holder = false;  // a holder has ended that counts in a proof; only a scan of the machine finds its heirs
  const auto build = [&](bool may_scan) {
    nodes.assign(candidates.size(), Node{});
    wants_scan = false;
    wakers_.begin_pass();
    for (const std::int32_t pid : candidates) {
      Watched& watched = watched_.at(pid);
      Node& node = nodes[node_of.at(pid)];
      for (const proc::ThreadSample& thread : watched.last.threads) {
        WaitFacts facts;
        const auto answer = wakers_.find(pid, thread, tree_, false, facts);
        const bool asks = WakerFinder::needs_scan(proc::classify(thread).kind);
        const bool is_open = answer == WakerFinder::Answer::kNeedsScan;
        if (answer == WakerFinder::Answer::kNotProvable) watched.is_not_provable = true;
        const bool may_learn = answer == WakerFinder::Answer::kUnknown && wakers_.lacks_hidden_holders();
        if (asks && (is_open || may_learn || answer == WakerFinder::Answer::kKnown) && !watched.proof)
          wants_scan = true;
        if (asks && !watched.proof) asking.insert(pid);
        // The holders of a descriptor may have changed since the latest scan. So a descriptor proves something only if
        // this look has scanned for its holders.
        if (answer == WakerFinder::Answer::kUnknown || answer == WakerFinder::Answer::kNotProvable || is_open ||
            (asks && !may_scan && !watched.proof)) {
          node.awake = true;
        }
        for (const Waker& waker : facts.wakers) {
          const auto target = node_of.find(waker.pid);
          // A process that has ended since the scan holds nothing. What it held may be held by a process that it made.
          if (asks && target == node_of.end() && has_ended(waker.pid)) {
            wants_scan = true;
            lacks_holder = lacks_holder || watched.proof;
            wakers_.note_ended_holder();
            watched.is_undecided = true;
          }
          const std::size_t node_of_waker = target == node_of.end() ? candidates.size() : target->second;
          node.edges.push_back({node_of_waker, waker.via, model::is_waited_for(waker.via)});
        }
      }
    }
  };
  // A scan of the machine takes long. If a process of the tree could end the wait, this scan is not needed.
  const auto depends_on_others = [&] {
    const std::vector<Judgement> judgements = judge(nodes);
    return std::ranges::any_of(
        asking, [&](std::int32_t pid) { return judgements[node_of.at(pid)].state != StuckState::kAwake; });
  };
  build(false);
  bool wants_whole_scan = wants_scan && (at_once || lacks_holder);
  if (wants_scan && !wants_whole_scan && wakers_.is_scan_of_members_due(now)) {
    wakers_.scan_members(tree_);
    build(true);
    wants_whole_scan = depends_on_others();
    if (wants_whole_scan) build(false);
  }
  if (wants_whole_scan && (at_once || wakers_.is_scan_due(now))) {
    wakers_.scan(tree_);
    build(true);
  }
  const std::vector<Judgement> judgements = judge(nodes);
  for (const std::int32_t pid : candidates) {
    if (judgements[node_of.at(pid)].state != StuckState::kAwake) suspects.push_back(pid);
  }
  return suspects;
}

std::uint64_t Supervisor::own_signals_of(std::int32_t pid) const {
  const auto own = own_signals_.find(pid);
  if (own == own_signals_.end() || proc::find_shim(pid) != own->second.shim_start) return 0;
  return std::uint64_t{1} << static_cast<unsigned>(own->second.signal - 1);
}

std::map<std::int32_t, std::uint64_t> Supervisor::find_signals_of_children(const std::set<std::int32_t>& parents,
                                                                           const std::set<std::int32_t>& stuck) const {
  std::map<std::int32_t, std::uint64_t> signals;
  for (const auto& [pid, member] : tree_.living()) {
    if (member.has_ended || stuck.contains(pid) || !parents.contains(member.ppid)) continue;
    const auto stat = proc::read_stat(pid);
    const int signal = stat ? stat->exit_signal : SIGCHLD;
    if (signal > 0 && signal <= 64) signals[member.ppid] |= bit_of_signal(signal);
  }
  return signals;
}

bool Supervisor::may_be_timed_out(std::int32_t pid, const std::vector<proc::ThreadSample>& threads, bool others_go_on) {
  const auto lives = std::ranges::find_if(threads, [](const proc::ThreadSample& thread) { return !thread.ended(); });
  if (lives == threads.end()) return false;
  ProcessEvidence evidence;
  evidence.own_signals = own_signals_of(pid);
  evidence.second.threads = threads;
  evidence.timer_signals = find_timer_signals(lives->tid);
  evidence.has_libc = proc::has_libc(FutexLookup(pid).mappings(lives->tid));
  read_python_handlers(pid, lives->tid, evidence);
  const std::uint64_t handlers = find_handlers(evidence).ways_out;
  if (handlers == 0) return false;
  if (others_go_on) return true;
  const auto of_children = find_signals_of_children({pid}, {});
  const bool may_hear_of_child = of_children.contains(pid) && (handlers & of_children.at(pid)) != 0;
  return may_hear_of_child || find_timed_signals(pid, lives->tid, handlers, tables_) != 0;
}

ProcessEvidence Supervisor::read_evidence(const Watched& watched, proc::MemorySharers& memories, Freezers& freezers) {
  const std::int32_t pid = watched.key.pid;
  ProcessEvidence evidence;
  evidence.key = watched.key;
  evidence.first = watched.last;
  evidence.own_signals = own_signals_of(pid);
  FutexLookup futexes(pid);
  for (const proc::ThreadSample& thread : watched.last.threads) {
    if (thread.ended()) continue;
    evidence.is_x86_64 = proc::runs_x86_64(thread.tid).value_or(false);
    evidence.has_io_uring =
        proc::has_io_uring(futexes.mappings(thread.tid)) || (tables_.has_whole(pid) && tables_.may_have_ring(pid));
    evidence.is_incomplete = !tables_.has_whole(pid);
    evidence.sharing = memories.find(pid, thread.tid, evidence.sharers);
    evidence.has_libc = proc::has_libc(futexes.mappings(thread.tid));
    evidence.timer_signals = find_timer_signals(thread.tid);
    const std::uint64_t reserved = evidence.has_libc ? kReservedSignals & ~evidence.timer_signals : 0;
    evidence.timed_signals = find_timed_signals(pid, thread.tid, thread.status.caught & ~reserved, tables_);
    break;
  }
  read_python_handlers(pid, watched.last.threads.back().tid, evidence);
  evidence.is_frozen = freezers.is_frozen(pid);
  const std::vector<std::int32_t> others = find_other_users(pid, evidence.sharers);
  for (const proc::ThreadSample& thread : watched.last.threads) {
    WaitFacts facts = futexes.look_up(thread);
    if (facts.mapping == WordMapping::kShared) {
      if (const auto place = futexes.find_shared(thread)) wakers_.find_shared(pid, *place, tree_, facts);
    }
    wakers_.find(pid, thread, tree_, true, facts);
    if (facts.word.use == model::FutexUse::kUnknown && futexes.may_have_moved(thread)) {
      facts.mapping = WordMapping::kUnknown;
      facts.wakers_known = false;
    }
    const bool is_private = facts.mapping == WordMapping::kPrivate;
    if (is_private) add_sharers(pid, facts.word.owner == 0 ? evidence.sharers : others, facts.wakers);
    if (facts.mapping == WordMapping::kPrivate && facts.word.owner_is_gone) find_owner_among(evidence.sharers, facts);
    evidence.facts.push_back(std::move(facts));
  }
  return evidence;
}

// The first round of each suspect was taken at the beginning of this look or earlier. This function reads the task
// lists and then takes the second rounds.
void Supervisor::prove_stuck(const std::vector<std::int32_t>& suspects, Clock::time_point now, bool at_once) {
  const Cost cost;
  std::vector<const Watched*> due;
  for (const std::int32_t pid : suspects) {
    const Watched& watched = watched_.at(pid);
    if (!watched.proof && (at_once || now >= watched.next_proof)) due.push_back(&watched);
  }
  if (due.empty()) return;
  // All processes are listed once, after the first round of each suspect. After that, only a thread with the memory of
  // a suspect can make another process that shares this memory. If that thread belongs to the suspect, the second round
  // shows that it ran. Otherwise the thread belongs to a process that already shares the memory, and so is in the list.
  proc::MemorySharers memories(started_);
  Freezers freezers;
  wakers_.begin_pass();
  std::vector<ProcessEvidence> all;
  std::vector<proc::ThreadsOf> processes;
  std::vector<std::int32_t> pids;
  for (const Watched* const watched : due) {
    processes.push_back(proc::list_living(watched->key.pid, watched->last));
    pids.push_back(watched->key.pid);
  }
  proc::MemoriesAhead ahead(std::move(processes));
  for (const auto some : proc::in_batches(std::span(pids), proc::kReadTogether)) {
    tables_.read(some);
    for (std::size_t at = 0; at < some.size(); ++at) {
      ahead.reach(all.size());
      all.push_back(read_evidence(*due[all.size()], memories, freezers));
      all.back().possible_sharer = memories.possible_sharer(some[at]);
    }
  }
  const Clock::duration least_rest = cost.used() * kProofShare;
  if (next_proof_of_live_wakers_ <= now) next_proof_of_live_wakers_ = now + least_rest;
  for (ProcessEvidence& evidence : all) {
    proc::ListedNumbers tids = proc::list_numbers(proc::proc_path(evidence.key.pid, "task"));
    evidence.is_incomplete = evidence.is_incomplete || tids.outcome == proc::ReadOutcome::kRefused;
    evidence.tids_between = std::move(tids.numbers);
  }
  for (const auto some : proc::in_batches(std::span(all), proc::kReadTogether)) {
    std::vector<std::int32_t> tried;
    for (const ProcessEvidence& evidence : some) tried.push_back(evidence.key.pid);
    std::vector<proc::SampledRound> rounds = proc::sample_rounds(tried);
    for (std::size_t at = 0; at < some.size(); ++at) {
      if (rounds[at].round) some[at].second = std::move(*rounds[at].round);
      finish_proof(some[at], now, least_rest);
    }
  }
}

// Called when all evidence about a process has been read.
void Supervisor::finish_proof(ProcessEvidence& evidence, Clock::time_point now, Clock::duration least_rest) {
  evidence.same_process = proc::is_same_process(evidence.key);
  evidence.is_incomplete = evidence.is_incomplete || lacks_facts();
  Proof proof = prove(evidence);
  Watched& watched = watched_.at(evidence.key.pid);
  watched.is_undecided = evidence.is_incomplete || !is_same_round(evidence.first, evidence.second);
  possible_sharers_.erase(evidence.key);
  if (!proof.stuck) {
    watched.is_not_provable = proof.lasting;
    watched.rest_before_proof = std::min<Clock::duration>(watched.rest_before_proof + kSettled, kLongestRest);
    watched.next_proof = now + std::max(watched.rest_before_proof, least_rest);
    return;
  }
  if (evidence.sharing == proc::Sharing::kUnknown) sharing_unknown_ = true;
  if (evidence.possible_sharer != 0) possible_sharers_.emplace(evidence.key, evidence.possible_sharer);
  watched.proof = std::move(proof);
  watched.facts = std::move(evidence.facts);
}

std::string Supervisor::describe_way_out(std::int32_t pid, bool is_own) const {
  const std::string handler = "a handler of " + name_signals(watched_.at(pid).proof->handlers);
  const auto member = tree_.living().find(pid);
  if (is_own || member == tree_.living().end()) return handler;
  return fmt::format("{} in process {} ({})", handler, pid, member->second.comm);
}

ProcessWaits Supervisor::waits_of(const Watched& watched) {
  ProcessWaits process;
  process.pid = watched.key.pid;
  for (std::size_t index = 0; index < watched.last.threads.size(); ++index) {
    const proc::ThreadSample& thread = watched.last.threads[index];
    if (!thread.ended()) process.threads.push_back({thread.tid, false, watched.facts[index].wakers});
  }
  return process;
}

void Supervisor::conclude(const std::vector<std::int32_t>& suspects) {
  const std::map<proc::ProcessKey, Verdict> before = std::exchange(verdicts_, {});
  std::vector<std::int32_t> pids;
  std::map<std::int32_t, std::size_t> node_of;
  for (const std::int32_t pid : suspects) {
    const Watched& watched = watched_.at(pid);
    if (!watched.proof) continue;
    if (watched.proof->timed != 0 && is_open_to_handlers(watched.last, watched.facts)) continue;
    node_of.emplace(pid, pids.size());
    pids.push_back(pid);
  }
  std::vector<ProcessWaits> processes(pids.size());
  for (std::size_t node = 0; node < pids.size(); ++node) processes[node] = waits_of(watched_.at(pids[node]));
  const std::vector<ProcessJudgement> judgements = judge_threads(processes);
  std::vector<bool> has_way_out;
  for (const std::int32_t pid : pids) has_way_out.push_back(watched_.at(pid).proof->handlers != 0);
  const auto rescuers = find_nearest_ways_out(processes, has_way_out);
  std::set<std::int32_t> lasting;
  for (std::size_t node = 0; node < pids.size(); ++node) {
    if (judgements[node].state != StuckState::kAwake && !rescuers[node]) lasting.insert(pids[node]);
  }
  std::set<std::int32_t> with_handlers;
  for (const std::int32_t pid : pids) {
    if (watched_.at(pid).proof->handlers != 0) with_handlers.insert(pid);
  }
  const auto of_children = find_signals_of_children(with_handlers, lasting);
  std::vector<bool> is_timed;
  for (const std::int32_t pid : pids) {
    const Proof& proof = *watched_.at(pid).proof;
    const bool may_hear_of_child = of_children.contains(pid) && (proof.handlers & of_children.at(pid)) != 0;
    is_timed.push_back(proof.timed != 0 || may_hear_of_child);
  }
  const auto timed_rescuers = find_nearest_ways_out(processes, is_timed);
  for (std::size_t node = 0; node < pids.size(); ++node) {
    const ProcessJudgement& judgement = judgements[node];
    if (judgement.state == StuckState::kAwake) {
      watched_.at(pids[node]).has_live_waker = true;
      continue;
    }
    Watched& watched = watched_.at(pids[node]);
    watched.has_live_waker = false;
    Verdict verdict;
    verdict.key = watched.key;
    verdict.since = watched.since;
    verdict.via = judgement.via;
    if (judgement.waits_for) verdict.waits_for = watched_.at(pids[*judgement.waits_for]).key;
    const bool handler_could = watched.proof->handler_could || rescuers[node];
    if (rescuers[node]) verdict.ways_out = {describe_way_out(pids[*rescuers[node]], *rescuers[node] == node)};
    verdict.may_be_timed_out = timed_rescuers[node].has_value();
    verdict.liveness = handler_could ? model::Liveness::kDeadButForSignal : model::Liveness::kDead;
    if (judgement.state == StuckState::kVictim) verdict.liveness = model::Liveness::kVictim;
    for (std::size_t index = 0; index < watched.last.threads.size(); ++index) {
      verdict.waits.push_back(describe_wait(watched.last.threads[index], &watched.facts[index]));
      verdict.waits.back().is_stuck = !watched.last.threads[index].ended();
    }
    if (!before.contains(verdict.key)) tree_.refresh_identity(watched.key.pid);
    verdicts_.emplace(verdict.key, std::move(verdict));
  }
}

void Supervisor::add_spinning(Clock::time_point now) {
  // A spinning thread must have been seen running at two looks at least. This age is long enough for two looks.
  constexpr Clock::duration kLeastAge = std::chrono::milliseconds(400);
  for (const Spin& spin : spins_.spinning(now, std::max(spin_age_, kLeastAge))) {
    const auto member = tree_.living().find(spin.touch.pid);
    if (member == tree_.living().end() || verdicts_.contains(member->second.key)) continue;
    Verdict verdict;
    verdict.key = member->second.key;
    verdict.since = spin.since;
    verdict.liveness = model::Liveness::kSpinning;
    bool refused = false;
    if (const auto round = proc::sample_round(spin.touch.pid, refused)) {
      for (const proc::ThreadSample& thread : round->threads) verdict.waits.push_back(describe_wait(thread, nullptr));
      verdict.may_be_timed_out = may_be_timed_out(spin.touch.pid, round->threads, false);
    }
    verdicts_.emplace(verdict.key, std::move(verdict));
  }
}

// A stalled call does not prove a hang: an atfork handler may wait for a minute and then go on, or a signal may arrive.
// So a call counts only if it has lasted for kStalledFactor times the spin age.
void Supervisor::add_stalled(Clock::time_point now) {
  for (const StalledCall& call : calls_) {
    const auto member = tree_.living().find(call.pid);
    if (member == tree_.living().end() || verdicts_.contains(member->second.key)) continue;
    if (now - call.since < spin_age_ * kStalledFactor) continue;
    Verdict verdict;
    verdict.key = member->second.key;
    verdict.since = call.since;
    verdict.liveness = model::Liveness::kStalled;
    bool refused = false;
    if (const auto thread = proc::sample_thread(call.pid, call.tid, refused))
      verdict.waits.push_back(describe_wait(*thread, nullptr));
    verdicts_.emplace(verdict.key, std::move(verdict));
  }
}

// Looks for rings of locks in processes that go on. It examines each thread of each process, so it does not run at
// every look. If the search of a process decided nothing because a thread was not seen in its wait for a GIL, the next
// look examines that process again. These repeated searches stop after kLongestOpen, because the thread may compute
// instead of waiting.
void Supervisor::add_partly_stuck(Clock::time_point now, bool at_once) {
  constexpr int kSearchShare = 200;  // searches take at most 1/kSearchShare of the time
  constexpr std::chrono::seconds kLongestOpen{30};
  // Searches that are not due may take this much time of one look. The limit is needed because a job may have many
  // Python processes.
  constexpr std::chrono::milliseconds kOpenSearches{100};
  const bool is_due = at_once || now >= next_search_;
  const Cost cost;
  std::erase_if(gil_searches_, [&](const auto& entry) {
    const auto member = tree_.living().find(entry.first.pid);
    return member == tree_.living().end() || member->second.key != entry.first;
  });
  if (is_due) {
    const auto is_here = [&](const auto& entry) {
      const auto member = tree_.living().find(entry.first.pid);
      return member != tree_.living().end() && member->second.key == entry.first && !verdicts_.contains(entry.first);
    };
    std::erase_if(partly_, [&](const auto& entry) { return !is_here(entry); });
    std::erase_if(gil_rings_, [&](const auto& entry) { return !is_here(entry); });
  }
  const Clock::time_point begin = Clock::now();
  for (const auto& [pid, member] : tree_.living()) {
    if (member.has_ended) continue;
    const auto open = gil_searches_.find(member.key);
    const bool is_open = open != gil_searches_.end() && open->second.seen.is_open &&
                         now - open->second.since < kLongestOpen && Clock::now() - begin < kOpenSearches;
    if ((is_due || is_open) && !verdicts_.contains(member.key)) search_partly_stuck(member.key, now, at_once);
  }
  if (is_due) next_search_ = now + std::max<Clock::duration>(kLongestRest, cost.used() * kSearchShare);
  for (const auto& [key, verdict] : partly_) {
    const auto member = tree_.living().find(key.pid);
    if (member != tree_.living().end() && member->second.key == key) verdicts_.emplace(key, verdict);
  }
}

void Supervisor::search_partly_stuck(const proc::ProcessKey& key, Clock::time_point now, bool at_once) {
  // If `at_once`, this look may be the last one. So the search may take longer.
  const Patience patience =
      at_once ? Patience{std::chrono::milliseconds(200), std::chrono::milliseconds(2000)} : Patience{};
  const auto ring = gil_rings_.find(key);
  StuckThreads stuck;
  if (ring != gil_rings_.end() && are_still_stuck(key.pid, ring->second)) {
    stuck = std::move(ring->second);
  } else {
    GilSearch& search = gil_searches_.try_emplace(key, GilSearch{{}, now}).first->second;
    stuck = find_stuck_threads(key.pid, search.seen, patience);
    if (!search.seen.is_open) search.since = now;
    if (!search.seen.is_open && search.seen.by_tid.empty()) gil_searches_.erase(key);
  }
  gil_rings_.erase(key);
  const auto known = partly_.find(key);
  const Clock::time_point since = known == partly_.end() ? now : known->second.since;
  partly_.erase(key);
  if (stuck.empty() || has_other_users(key.pid, stuck.threads.front().tid, started_)) return;
  Verdict verdict;
  verdict.key = key;
  verdict.liveness = model::Liveness::kAwake;
  verdict.may_be_timed_out = may_be_timed_out(key.pid, stuck.threads, !stuck.are_all);
  verdict.since = since;
  for (std::size_t index = 0; index < stuck.threads.size(); ++index) {
    verdict.waits.push_back(describe_wait(stuck.threads[index], &stuck.facts[index]));
    verdict.waits.back().is_stuck = true;
    // A thread that waits for a GIL is inside of pthread_cond_timedwait(). In this function another thread may cancel
    // it, unless all threads are stuck.
    verdict.waits.back().may_be_cancelled = stuck.facts[index].word.use == model::FutexUse::kGil && !stuck.are_all;
  }
  if (stuck.has_gil()) gil_rings_.emplace(key, std::move(stuck));
  partly_.emplace(key, std::move(verdict));
}

// Adds the signals that no thread takes. A stuck process never takes these signals. A process that goes on might still
// take the signals, so they count only after some time. That time is the spin age if no thread of the process has run
// meanwhile, and kStalledFactor times the spin age if a thread has run.
void Supervisor::add_unheard(Clock::time_point now) {
  for (const Unheard& unheard : unheard_.look(tree_, now, tables_)) {
    auto known = verdicts_.find(unheard.key);
    if (known == verdicts_.end()) {
      if (now - unheard.since < spin_age_ * (unheard.at_rest ? 1 : kStalledFactor)) continue;
      Verdict verdict;
      verdict.key = unheard.key;
      verdict.liveness = model::Liveness::kAwake;
      verdict.since = unheard.since;
      for (const proc::ThreadSample& thread : unheard.round.threads)
        verdict.waits.push_back(describe_wait(thread, nullptr));
      known = verdicts_.emplace(unheard.key, std::move(verdict)).first;
    }
    known->second.unheard_signals = unheard.signals;
    known->second.unheard_since = unheard.since;
  }
}

std::vector<std::string> Supervisor::limits(const std::function<bool(std::int32_t pid)>& is_told) const {
  std::vector<std::string> limits;
  for (const auto& [key, program] : unreadable_) {
    if (is_told(key.pid))
      limits.push_back(fmt::format("process {} ({}) could not be watched: the kernel does not let forksight examine it",
                                   key.pid, program));
  }
  std::vector<std::string> refused;
  for (const std::int32_t pid : wakers_.refused()) {
    const auto member = tree_.living().find(pid);
    if (member == tree_.living().end()) continue;
    if (unreadable_.contains(member->second.key) && is_told(pid)) continue;
    refused.push_back(fmt::format("{} ({})", pid, member->second.comm));
  }
  for (const HiddenProcess& process : wakers_.hidden_descendants())
    refused.push_back(fmt::format("{} ({})", process.pid, process.comm));
  if (!refused.empty()) {
    const std::size_t more = refused.size() - std::min(refused.size(), kMostNamed);
    refused.resize(refused.size() - more);
    limits.push_back(fmt::format(
        "the kernel does not let forksight list the descriptors of {} {}{}: so forksight proves no wait for a pipe, a "
        "socket, an event, a file lock or shared memory; as root, it usually can list them",
        refused.size() == 1 ? "process" : "processes", fmt::join(refused, ", "),
        more > 0 ? fmt::format(" and {} more", more) : ""));
  }
  if (had_too_many_wakers_) {
    limits.push_back(fmt::format(
        "very many processes could end the waits of others, for example because all of them have one pipe open: "
        "forksight examines {} pairs of a waiting thread and a process that could end its wait, and proves nothing "
        "about further waits that more than {} processes could end",
        files::kMaxPossibleWakers, files::kFewPossibleWakers));
  }
  if (had_too_many_polled_) {
    limits.push_back(fmt::format(
        "very many descriptors are polled, or very many epoll instances are open: forksight examines {} of them at one "
        "look, and proves nothing about further waits of poll(), select() and epoll_wait()",
        files::kMaxPolledDescriptors));
  }
  if (has_left_out_descriptors_ || tables_.is_cut()) {
    limits.push_back(fmt::format(
        "the processes have so many descriptors that forksight left out some after {} s of processor time: it proves "
        "nothing about waits for pipes, sockets, eventfds and file locks, nor about processes whose descriptors it "
        "left out",
        std::chrono::duration_cast<std::chrono::seconds>(files::kLongestDescriptorReading).count()));
  }
  for (const auto& [key, sharer] : possible_sharers_) {
    const auto member = tree_.living().find(key.pid);
    if (member == tree_.living().end() || member->second.key != key || verdicts_.contains(key) || !is_told(key.pid))
      continue;
    const auto other = proc::read_stat(sharer);
    if (!other) continue;
    limits.push_back(fmt::format(
        "process {} ({}) may share the memory of process {} ({}), and could then end its waits: the kernel does not "
        "let forksight find out, so forksight does not prove that process {} hangs; as root, it usually can find out",
        sharer, other->comm, key.pid, member->second.comm, key.pid));
  }
  if (sharing_unknown_) {
    limits.emplace_back(
        "the kernel does not let forksight find out for every process whether it shares memory with a process of the "
        "run");
  }
  return limits;
}

}  // namespace forksight::watch
