#include "diagnose/pools.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "diagnose/futex_waits.hpp"
#include "diagnose/openmp.hpp"
#include "diagnose/python_waits.hpp"
#include "diagnose/words.hpp"

namespace forksight::pools {

namespace {

constexpr std::size_t kMostNamed = 4;
constexpr std::size_t kSmallestPool = 2;  // a single thread of the program itself is not a pool

bool is_of_table(model::Owner owner) { return owner != model::Owner::kUnknown && owner != model::Owner::kStdThread; }

// True if other rules report a lost pool of this owner. For libgomp, a region that waits for a lost pool is recorded as
// a touch. Python has rules of its own.
bool has_other_finding(model::Owner owner) { return owner == model::Owner::kLibgomp || owner == model::Owner::kPython; }

// True if all threads run the same function of the program. Then they count as one pool, even if no record shows that
// they were created at one place.
bool have_one_body(const model::Model& model, const model::ThreadPool& pool) {
  const std::string& body = model.threads[pool.threads.front()].body;
  return !body.empty() &&
         std::ranges::all_of(pool.threads, [&](model::ThreadId id) { return model.threads[id].body == body; });
}

bool was_made_at_one_place(const model::Model& model, const model::ThreadPool& pool) {
  const std::string place = words::place(model.threads[pool.threads.front()].created_at);
  return !place.empty() && std::ranges::all_of(pool.threads, [&](model::ThreadId id) {
    return words::place(model.threads[id].created_at) == place;
  });
}

// Counts the condition variables for which the threads wait. This is the number of pools, because all workers of one
// pool wait for the same condition variable.
std::size_t count_conditions(const model::Fork& fork, const std::vector<model::ThreadId>& threads) {
  std::set<std::uint64_t> conditions;
  for (const model::LostWait& wait : fork.lost_waits) {
    const bool is_of_it = std::ranges::find(threads, wait.thread) != threads.end();
    if (is_of_it && wait.kind == model::AwaitedKind::kCondition) conditions.insert(wait.object);
  }
  return conditions.size();
}

bool is_blas(model::Owner owner) {
  return owner == model::Owner::kOpenblas || owner == model::Owner::kBlis || owner == model::Owner::kMkl;
}

// True if nobody looked at the process from outside, but the record of the wait alone shows that the process is stuck.
// For this, the process must have had no signal handlers when it began the wait. The shim records such a wait only if
// the other conditions of touch_futex() (preload/threads/unending_waits.cpp) are met.
bool is_stuck_by_itself(const Evidence& evidence, const model::Touch& wait) {
  const model::Process& process = evidence.process(wait.process);
  return !wait.has_handlers && process.liveness == model::Liveness::kUnknown && !process.exit_status &&
         evidence.find_hang(wait).has_value();
}

// True if the fork happened inside of a region with a team. The rule fork-inside-parallel-region reports such a fork.
bool is_in_region(const model::Model& model, const model::Fork& fork) {
  return std::ranges::any_of(fork.pools, [&](model::PoolId id) { return openmp::is_team_in_region(model.pools[id]); });
}

// Returns the only lost pool for which the child can be waiting. Pools of libgomp do not count. Null in three cases:
// there are several such pools, it is not certain that the lost threads are a pool, or another rule reports the pool.
const model::ThreadPool* find_only_pool(const model::Model& model, const model::Fork& fork) {
  if (fork.unknown_threads > 0) return nullptr;
  const model::ThreadPool* only = nullptr;
  for (const model::ThreadPool& pool : fork.thread_pools) {
    if (pool.state != model::PoolState::kLost || pool.owner == model::Owner::kLibgomp) continue;
    if (only != nullptr) return nullptr;
    only = &pool;
  }
  if (only == nullptr || has_other_finding(only->owner)) return nullptr;
  if (is_of_table(only->owner)) return only;
  if (only->owner != model::Owner::kStdThread || count_conditions(fork, only->threads) > 1) return nullptr;
  return only->threads.size() >= kSmallestPool && (was_made_at_one_place(model, *only) || have_one_body(model, *only))
             ? only
             : nullptr;
}

// Returns the lost pool of the library in which the child waits. This is the innermost library on the stack that has a
// row in owners.def. Python and libgomp are skipped, because they have rules of their own.
const model::ThreadPool* find_called_pool(const model::Fork& fork, const model::Stack& stack) {
  for (const model::Frame& frame : stack.frames) {
    const model::Owner owner = model::find_owner_of_library(frame.module);
    if (!is_of_table(owner) || has_other_finding(owner)) continue;
    const auto at = std::ranges::find_if(fork.thread_pools, [&](const model::ThreadPool& pool) {
      return pool.owner == owner && pool.state == model::PoolState::kLost;
    });
    return at == fork.thread_pools.end() ? nullptr : &*at;
  }
  return nullptr;
}

// True if the fork lost only workers of libgomp (GNU OpenMP). Each worker runs only the parallel regions of one thread.
// Outside of a region, workers wake no thread. Another rule reports a region whose workers were lost.
bool has_lost_idle_workers_only(const model::Model& model, const model::Fork& fork) {
  // Only a libgomp that is a shared library counts. If libgomp is linked into the program, its code cannot be told from
  // the program's own code.
  const auto is_worker = [&](model::ThreadId id) {
    const model::Thread& thread = model.threads[id];
    return thread.owner == model::Owner::kLibgomp && words::base_name(thread.start_library).starts_with("libgomp.so");
  };
  return fork.unknown_threads == 0 && !fork.may_have_lost_more && !fork.lost_threads.empty() &&
         std::ranges::all_of(fork.lost_threads, is_worker);
}

// True if the frame is in libc, or in the shim, which passes a call on to libc.
bool is_below_libraries(const model::Frame& frame) {
  const std::string_view name = words::base_name(frame.module);
  return name.starts_with("libc.so") || name.starts_with("libc-2") || name.starts_with("libpthread") ||
         name.starts_with("libforksight");
}

bool is_in_openmp(const model::Touch* wait) {
  return wait != nullptr && std::ranges::any_of(wait->stack.frames, [](const model::Frame& frame) {
           return model::find_owner_of_library(frame.module) == model::Owner::kLibgomp;
         });
}

}  // namespace

std::vector<UnexplainedWait> find_unexplained_waits(const Evidence& evidence, const std::vector<Finding>& findings) {
  const model::Model& model = evidence.model();
  std::unordered_set<model::ProcessId> explained;
  // `explained` has the processes that earlier rules explain. Some of these processes have no open touch. For example,
  // pthread_cond_signal() returns even if its signal went to a lost thread.
  for (const Finding& finding : findings) {
    if (finding.outcome == Outcome::kHang || finding.outcome == Outcome::kMayHang)
      explained.insert(finding.processes.begin(), finding.processes.end());
  }
  std::vector<UnexplainedWait> found;
  const auto consider = [&](const UnexplainedWait& wait) {
    if (evidence.has_open_hazard(wait.child) || evidence.process(wait.child).has_execed) return;
    const std::size_t lost = wait.fork->lost_threads.size() + wait.fork->unknown_threads;
    if (python::is_explained(evidence, *wait.fork) || evidence.ended_unseen(wait.child)) return;
    // For an inferred fork, all threads of the child were examined. If no open wait was found, the fork does not
    // explain the hang. Then the threads wait for each other, or another finding explains the hang.
    if (wait.wait == nullptr && wait.fork->is_inferred) return;
    // The rules atfork-bypassed and fork-in-signal-handler report these children.
    if (wait.wait == nullptr && (wait.fork->bypassed || words::is_in_signal_handler(wait.fork->stack))) return;
    if (has_lost_idle_workers_only(model, *wait.fork) && !is_in_openmp(wait.wait)) return;
    if (lost == 0 || is_in_region(model, *wait.fork) || evidence.is_in_handler(wait.child)) return;
    if (!explained.insert(wait.child).second) return;
    const bool is_stuck = is_dead_in_futex(evidence.process(wait.child)) ||
                          (wait.wait != nullptr && is_stuck_by_itself(evidence, *wait.wait));
    if (is_stuck) found.push_back(wait);
  };
  for (const model::Fork& fork : model.forks) {
    if (fork.child) consider({&fork, *fork.child, evidence.find_open_wait(*fork.child)});
  }
  // Considers further descendants, too. The fork that made such a process may have lost no thread, but an earlier fork
  // of an ancestor did.
  for (model::ProcessId id = 0; id < model.processes.size(); ++id) {
    const model::Touch* const wait = evidence.find_open_wait(id);
    if (wait != nullptr) consider({&model.forks[wait->fork], id, wait});
  }
  return found;
}

void set_certainty(const model::Process& child, Finding& finding) {
  if (no_signal_can_wake(child)) {
    finding.harm = Certainty::kProven;
    finding.outcome = Outcome::kHang;
  } else if (has_way_out(child)) {
    set_may_be_intended(finding);
  } else {
    // A signal handler may legally post a semaphore, and so end the wait. Many daemons end in this way.
    finding.harm = Certainty::kLikely;
    finding.outcome = is_proven_dead(child) ? Outcome::kMayHang : Outcome::kHang;
  }
}

std::string name_of_forked(const Evidence& evidence, const UnexplainedWait& wait) {
  if (wait.fork->child == wait.child) return "It";
  if (!wait.fork->child) return "An ancestor of it";
  return fmt::format("Its ancestor, process {},", evidence.process(*wait.fork->child).pid);
}

std::size_t count_pools(const model::Fork& fork) { return count_conditions(fork, fork.lost_threads); }

const model::ThreadPool* find_pool(const model::Model& model, const UnexplainedWait& wait) {
  // The child waits for a lock, and it is known which threads may hold the lock. These threads need not be a pool.
  if (wait.wait != nullptr && !wait.wait->lock_references.empty()) return nullptr;
  const model::ThreadPool* const called =
      wait.wait == nullptr ? nullptr : find_called_pool(*wait.fork, wait.wait->stack);
  // If a child waits for a lock, it does not wait for a worker. Any lost thread may hold the lock.
  const bool is_for_lock = wait.wait != nullptr && futex_waits::find_purpose(wait.wait->stack).is_lock;
  return called != nullptr || is_for_lock ? called : find_only_pool(model, *wait.fork);
}

const model::ThreadPool* find_openmp_pool(const Evidence& evidence, const UnexplainedWait& wait) {
  const std::vector<model::Wait>& waits = evidence.process(wait.child).waits;
  if (waits.size() > 1) return nullptr;  // the second thread of the child may be a worker of the pool
  const model::Stack* const stack = wait.wait != nullptr ? &wait.wait->stack
                                    : waits.empty()      ? nullptr
                                                         : &waits[0].stack;
  if (stack == nullptr) return nullptr;
  // A function that the region calls may sleep, too. Then the innermost library on the stack is not the OpenMP runtime,
  // and the lost pool does not explain the sleep.
  const auto caller = std::ranges::find_if_not(stack->frames, is_below_libraries);
  if (caller == stack->frames.end()) return nullptr;
  const model::Owner owner = model::find_owner_of_library(caller->module);
  if (owner != model::Owner::kLibomp && owner != model::Owner::kLibiomp5) return nullptr;
  const auto is_it = [&](const model::ThreadPool& pool) { return pool.owner == owner && !pool.threads.empty(); };
  const auto pool = std::ranges::find_if(wait.fork->thread_pools, is_it);
  return pool == wait.fork->thread_pools.end() ? nullptr : &*pool;
}

std::string pool_name(const model::ThreadPool& pool) {
  if (pool.owner == model::Owner::kStdThread)
    return fmt::format("pool of {}", words::count(pool.threads.size(), "std::thread", "std::threads"));
  const std::string size = words::count(pool.threads.size(), "thread", "threads");
  return is_of_table(pool.owner) ? fmt::format("{} pool of {}", model::info_of(pool.owner).name, size)
                                 : fmt::format("pool of {}", size);
}

std::string name_threads(const model::Model& model, const model::Fork& fork) {
  const std::vector<model::ThreadId>& threads = fork.lost_threads;
  std::string names;
  for (std::size_t i = 0; i < threads.size() && i < kMostNamed; ++i) {
    const model::Thread& thread = model.threads[threads[i]];
    names += (names.empty() ? "" : ", ") + words::thread(thread) + words::worker_of(thread);
    const std::string created = words::at(" created at ", thread.created_at);
    names += created.empty() && !thread.start_routine.empty() ? fmt::format(" started with {}", thread.start_routine)
                                                              : created;
    const auto wait = std::ranges::find(fork.lost_waits, threads[i], &model::LostWait::thread);
    // For an inferred fork, forksight sees what these threads wait for now, and not what they waited for at the fork.
    if (wait != fork.lost_waits.end() && !fork.is_inferred)
      names += fmt::format(", which waited for {}", words::awaited(model, *wait));
  }
  const std::size_t more = threads.size() - std::min(threads.size(), kMostNamed) + fork.unknown_threads;
  if (names.empty() && more == 1) return "one that forksight knows nothing about";
  if (more > 0) names += fmt::format("{}{} more", names.empty() ? "" : " and ", more);
  return names;
}

std::string describe_lost_threads(const Evidence& evidence, const UnexplainedWait& wait) {
  const model::Fork& fork = *wait.fork;
  const model::Process& parent = evidence.process(fork.process);
  const std::size_t lost = fork.lost_threads.size() + fork.unknown_threads;
  const std::string least = fork.may_have_lost_more ? "at least " : "";
  const std::string threads = name_threads(evidence.model(), fork);
  // If the lost threads have no numbers, or the child is known from a core, only the child's memory shows the lost
  // threads. A child of _Fork() keeps the list of its parent's threads in its memory. If this child forks again, the
  // memory of the new child lists the lost threads of several forks.
  const bool has_no_number =
      std::ranges::all_of(fork.lost_threads, [&](model::ThreadId id) { return evidence.model().threads[id].tid == 0; });
  const bool is_of_core = evidence.process(wait.child).is_core;
  const bool is_of_memory = fork.is_inferred && !fork.lost_threads.empty() && (has_no_number || is_of_core);
  if (parent.is_some_ancestor || is_of_memory) {
    return fmt::format("The fork or forks that led to this process left behind {}{}: {}.", least,
                       words::count(lost, "thread", "threads"), threads);
  }
  return fmt::format("{} was forked{} from {}, which had {}{}: {}.", name_of_forked(evidence, wait),
                     words::at(" at ", fork.stack), words::parent(parent), least,
                     words::count(lost, "more thread", "more threads"), threads);
}

std::string_view find_blas_library(const model::Model& model, const model::Touch& touch) {
  if (!touch.held) return {};
  const model::Lock& lock = model.locks[model.forks[touch.fork].held[*touch.held].lock];
  const model::Frame* const frame = words::find_user_frame(touch.stack);
  // A lock on the heap or on a stack is in no module. Then the library of the code that uses the lock counts as its
  // owner.
  const std::string_view library = !lock.module.empty() ? std::string_view(lock.module)
                                   : frame != nullptr   ? std::string_view(frame->module)
                                                        : std::string_view();
  return is_blas(model::find_owner_of_library(library)) ? library : std::string_view();
}

}  // namespace forksight::pools
