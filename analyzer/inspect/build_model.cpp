#include "inspect/build_model.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "inspect/java_locks.hpp"
#include "inspect/lineage.hpp"
#include "inspect/lost_objects.hpp"
#include "inspect/lost_pthreads.hpp"
#include "inspect/lost_threads.hpp"
#include "inspect/own_waits.hpp"
#include "inspect/pthreads.hpp"
#include "inspect/python_semaphores.hpp"
#include "inspect/python_stacks.hpp"
#include "inspect/scene.hpp"
#include "inspect/signal_waits.hpp"
#include "inspect/stuck_handlers.hpp"

namespace forksight::inspect {
namespace {

bool is_thread_start(const model::Frame& frame) {
  const std::string_view name = public_name(frame.function);
  return is_libc(frame.module) && (name == "start_thread" || name == "clone3" || name == "clone" || name.empty());
}

// Sets where the thread started: in the function of the outermost frame that is not libc's code for starting a thread.
void find_start(const model::Stack& stack, model::Thread& thread) {
  if (thread.is_main || stack.cut) return;
  for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame) {
    if (is_thread_start(*frame)) continue;
    thread.start_routine = frame->function;
    thread.start_library = frame->module;
    // A std::thread calls the program's own function through templates of libstdc++. `body` is the outermost frame that
    // belongs to the program itself.
    const auto body = std::find_if(frame, stack.frames.rend(), [](const model::Frame& one) {
      return !one.function.empty() && !one.function.starts_with("std::") &&
             one.function.find("std::thread::") == std::string::npos &&
             one.module.find("libstdc++") == std::string::npos;
    });
    if (body != stack.frames.rend()) thread.body = body->function;
    return;
  }
}

// True if the thread began after the child was forked. If the thread and the child began in the same clock tick, their
// ids decide: the later one has the greater id.
bool began_after(const image::Thread& thread, const image::Image& child) {
  if (thread.start_ticks == 0 || child.start_ticks == 0) return false;
  if (thread.start_ticks != child.start_ticks) return thread.start_ticks > child.start_ticks;
  return thread.tid > child.pid;
}

// `word`: the name of a futex word. Returns the name of the object that contains the word. In a condition variable or
// semaphore the futex word is a member that programs do not name: "done.__data.__g_signals[0]", or "done+0x28" without
// debug information (0x20 to 0x2c in glibc 2.25 and later).
std::string name_of_whole(const std::string& word) {
  const std::size_t offset = word.size() < 5 ? std::string::npos : word.find("+0x2", word.size() - 5);
  return word.substr(0, std::min(word.find(".__"), offset));
}

// Replaces the address in `wait.target` by the name of the object: "the mutex at 0x55d0c0" becomes "the mutex
// queue_mutex".
void name_target(model::Wait& wait) {
  const std::string address = fmt::format("at {:#x}", wait.object);
  const std::size_t at = wait.target.find(address);
  if (at != std::string::npos) {
    wait.target.replace(at, address.size(), wait.object_name);
  } else if (wait.target.empty()) {
    wait.target = wait.object_name;
  }
}

// Turns subjects into a model, in this order: processes, their threads, the forks between them, and what each thread
// waits for.
class Builder {
 public:
  Builder(const std::vector<Subject>& subjects, model::Model& model, std::vector<PythonLocals>* locals)
      : scene_(subjects, model), python_(scene_, locals), lost_(scene_) {}
  // `waits`: what the threads of each subject wait for.
  void build(std::vector<std::vector<model::Wait>> waits);

 private:
  void add_process(std::size_t subject, std::vector<model::Wait> waits);
  bool is_stuck_alone(std::size_t subject, std::int32_t tid);
  bool may_be_cancelled(std::size_t subject, std::int32_t tid) const;
  void find_interesting();
  model::ForkId find_fork_of_loss(model::ForkId fork) const;
  void add_threads(std::size_t subject);
  std::optional<model::ForkId> add_fork(std::size_t child);
  void note_signal_handler(model::Fork& fork) const;
  void note_conditions(model::Fork& fork) const;
  void add_pools(model::Fork& fork);
  void explain_all(std::size_t subject, std::optional<model::ForkId> fork);

  Scene scene_;
  PythonStacks python_;
  LostThreads lost_;
  std::vector<bool> is_interesting_;                                    // by subject, see find_interesting()
  std::map<std::size_t, std::unordered_set<std::int32_t>> stuck_tids_;  // by subject, only for processes that are awake
};

void Builder::add_process(std::size_t subject, std::vector<model::Wait> waits) {
  const Subject& from = scene_.subjects[subject];
  model::Process process;
  process.pid = from.is_supposed ? 0 : from.image.pid;
  process.ppid = from.image.ppid;
  process.start_ticks = from.image.start_ticks;
  process.exe = from.image.exe;
  process.cmdline = from.image.cmdline;
  process.is_core = from.image.is_core;
  process.liveness = from.liveness;
  process.stuck_for_ms = from.stuck_for_ms;
  process.waits = std::move(waits);
  process.zombies = from.zombies;
  process.has_reaped = from.has_reaped;
  process.waits_for = from.waits_for;
  process.waits_via = from.waits_via;
  process.unheard_signals = from.unheard_signals;
  process.ways_out = from.ways_out;
  process.may_be_timed_out = from.may_be_timed_out;
  process.sets_no_handlers = from.sets_no_handlers;
  process.is_asked_about = from.is_asked_about;
  scene_.model.processes.push_back(std::move(process));
}

// Finds the processes that are stuck, and those with a stuck descendant that is a copy of the process. The stacks of
// other processes show nothing useful.
void Builder::find_interesting() {
  const std::size_t count = scene_.subjects.size();
  is_interesting_.assign(count, false);
  for (std::size_t subject = 0; subject < count; ++subject) is_interesting_[subject] = scene_.is_stuck(subject);
  for (std::size_t stuck = 0; stuck < count; ++stuck) {
    if (!scene_.is_stuck(stuck)) continue;
    auto at = scene_.subjects[stuck].parent;
    for (std::size_t steps = 0; at && steps < count; ++steps, at = scene_.subjects[*at].parent) {
      if (!is_interesting_[*at])
        is_interesting_[*at] = is_same_layout(scene_.subjects[stuck].image, scene_.subjects[*at].image);
    }
  }
}

// `fork`: the fork that made a process. Returns the latest fork that left threads behind: `fork` itself, or a fork that
// made an ancestor of the process. If no fork left threads behind, returns `fork`.
model::ForkId Builder::find_fork_of_loss(model::ForkId fork) const {
  model::ForkId at = fork;
  for (std::size_t steps = 0; steps < scene_.subjects.size(); ++steps) {
    const model::Fork& one = scene_.model.forks[at];
    if (!one.lost_threads.empty() || one.unknown_threads > 0) return at;
    const auto before = scene_.forks.find(one.process);
    if (before == scene_.forks.end()) break;
    at = before->second;
  }
  return fork;
}

// True if the thread is stuck, but its process is awake.
bool Builder::is_stuck_alone(std::size_t subject, std::int32_t tid) {
  const Subject& own = scene_.subjects[subject];
  if (own.liveness != model::Liveness::kAwake) return false;
  const auto [stuck, is_new] = stuck_tids_.try_emplace(subject);
  if (is_new) {
    for (const model::Wait& wait : scene_.model.processes[subject].waits) {
      if (wait.is_stuck) stuck->second.insert(wait.tid);
    }
  }
  return stuck->second.contains(tid);
}

// True if another thread may cancel this thread at any instruction.
bool Builder::may_be_cancelled(std::size_t subject, std::int32_t tid) const {
  const image::Image& image = scene_.subjects[subject].image;
  const auto thread = std::ranges::find(image.threads, tid, &image::Thread::tid);
  return thread != image.threads.end() && may_be_cancelled_anywhere(image, *thread);
}

void Builder::add_threads(std::size_t subject) {
  const auto is_partly_stuck = [&](const image::Thread& thread) { return is_stuck_alone(subject, thread.tid); };
  const bool is_whole = is_interesting_[subject];
  const bool is_idle = scene_.subjects[subject].is_idle && scene_.subjects[subject].image.memory;
  const bool has_stacks =
      is_whole || is_idle || std::ranges::any_of(scene_.subjects[subject].image.threads, is_partly_stuck);
  if (has_stacks) python_.read(subject);
  std::vector<model::Thread>& threads = scene_.model.threads;
  const std::size_t needed = threads.size() + scene_.subjects[subject].image.threads.size();
  if (threads.capacity() < needed) threads.reserve(std::max(needed, threads.size() * 2));
  for (const image::Thread& from : scene_.subjects[subject].image.threads) {
    ThreadFacts facts;
    facts.id = scene_.model.threads.size();
    model::Thread thread;
    thread.process = subject;
    thread.tid = from.tid;
    thread.name = from.name;
    thread.is_main = from.tid == scene_.subjects[subject].image.pid;
    thread.pointer = from.fs_base;
    if ((is_whole || is_partly_stuck(from)) && from.registers && !from.has_ended) {
      facts.stack = scene_.stacks_of(subject).of(from);
      facts.call = recognise(from, facts.stack, scene_.callee_of(subject), scene_.subjects[subject].image.libc);
      find_start(facts.stack, thread);
    } else if (is_idle && from.registers && !from.has_ended) {
      facts.stack = scene_.stacks_of(subject).of(from);
    }
    python_.note(subject, from, facts.call);
    thread.owner = model::find_owner(thread, facts.stack);
    scene_.model.threads.push_back(std::move(thread));
    scene_.add_facts(subject, from.tid, std::move(facts));
  }
  for (model::Wait& wait : scene_.model.processes[subject].waits) {
    const ThreadFacts* const facts = scene_.find_facts(subject, wait.tid);
    if (facts != nullptr) wait.stack = facts->stack;
    // Inside of pthread_join() and pthread_cond_timedwait() glibc makes the thread cancellable at any instruction while
    // it sleeps, whatever the program has chosen. CPython waits for the GIL in pthread_cond_timedwait(). So for a join
    // and for a GIL, the flags of the thread are not examined.
    const bool is_of_call = wait.use == model::FutexUse::kGil || wait.use == model::FutexUse::kJoin;
    if (!is_of_call && is_stuck_alone(subject, wait.tid)) wait.may_be_cancelled = may_be_cancelled(subject, wait.tid);
    python_.splice_lines(subject, wait);
    const bool is_word = wait.kind == model::WaitKind::kFutex && wait.use != model::FutexUse::kJoin &&
                         wait.use != model::FutexUse::kGil;
    if (has_stacks && facts != nullptr && facts->call.kind == CallKind::kBarrierWait && facts->call.object != 0) {
      scene_.name_data(subject, facts->call.object, wait.object_name, wait.object_module);
      continue;
    }
    if (!has_stacks || !is_word || !scene_.name_data(subject, wait.object, wait.object_name, wait.object_module))
      continue;
    if (wait.use == model::FutexUse::kUnknown) wait.object_name = name_of_whole(wait.object_name);
    name_target(wait);
  }
}

// Notes the condition variables for which the lost threads wait in the parent now. The function assumes that each of
// these threads already waited for the same condition variable at the fork. This assumption is true for the idle
// workers of a pool.
void Builder::note_conditions(model::Fork& fork) const {
  for (const model::ThreadId id : fork.lost_threads) {
    const StuckCall& call = scene_.facts_of(fork.process, scene_.model.threads[id].tid).call;
    if (call.kind == CallKind::kConditionWait && call.object != 0)
      fork.lost_waits.push_back({id, model::AwaitedKind::kCondition, call.object, {}});
  }
}

// Adds the fork that made the process `child`. The lost threads of this fork are the threads that the parent has now,
// except those that began after the fork. nullopt: the process was not forked, or its parent is not known.
std::optional<model::ForkId> Builder::add_fork(std::size_t child) {
  const Subject& subject = scene_.subjects[child];
  if (!subject.parent || subject.is_forked == false || subject.is_in_vfork) return std::nullopt;
  const image::Image& parent = scene_.subjects[*subject.parent].image;
  const bool is_absent = scene_.subjects[*subject.parent].is_absent;
  if (!is_absent && !is_same_layout(subject.image, parent)) return std::nullopt;
  model::Fork fork;
  fork.process = *subject.parent;
  fork.child = child;
  fork.is_inferred = true;
  if (is_absent) lost_.add_of_absent_parent(fork);
  const std::uint64_t pointer = find_first_pointer(subject.image);
  const std::int32_t known = find_forking_thread(subject.image, pointer, parent);
  // `pointer` is the struct pthread of the thread that forked. `has_gone`: the parent no longer has that thread.
  const bool has_gone = known == 0 && !is_absent && pointer != 0 && has_ended_since(parent, pointer);
  const bool is_unseen = known == 0 && !is_absent && !has_gone && parent.threads.size() > 1;
  const std::int32_t forking = known != 0 ? known : has_gone || is_unseen ? 0 : parent.pid;
  const bool is_there = is_absent || scene_.find_facts(*subject.parent, forking) != nullptr;
  if (!is_there) fork.forking_thread = scene_.unknown_thread(*subject.parent);
  for (const image::Thread& thread : parent.threads) {
    const model::ThreadId id = scene_.facts_of(*subject.parent, thread.tid).id;
    if (thread.tid == forking) {
      fork.forking_thread = id;
    } else if (!thread.has_ended && !began_after(thread, subject.image)) {
      fork.lost_threads.push_back(id);
    }
  }
  // If `is_unseen` is true, one of the threads in `lost_threads` called fork(), but it is not known which one. Then
  // only the number of the lost threads is kept.
  if (is_unseen && !fork.lost_threads.empty()) {
    fork.unknown_threads = static_cast<std::uint32_t>(fork.lost_threads.size() - 1);
    fork.lost_threads.clear();
  }
  fork.python = scene_.model.processes[fork.process].python;
  if (!is_absent) {
    note_conditions(fork);
    if (scene_.is_stuck(child)) lost_.add_ended_since(fork);
    note_signal_handler(fork);
    note_signal_waits(scene_, parent, fork);
  }
  add_pools(fork);
  scene_.model.forks.push_back(std::move(fork));
  return scene_.model.forks.size() - 1;
}

// If fork() was called in a signal handler, stores the stack from the handler outwards in `fork`. The child's stack
// alone does not show whether the handler called fork(), or ran in the child only. So the parent's thread must still be
// in the same handler: the frames outside of the handler must be equal in both stacks.
void Builder::note_signal_handler(model::Fork& fork) const {
  const auto& child = scene_.facts_of(*fork.child, scene_.model.processes[*fork.child].pid).stack.frames;
  const auto& parent = scene_.facts_of(fork.process, scene_.model.threads[fork.forking_thread].tid).stack.frames;
  const auto handler = std::ranges::find(child, model::kSignalFrame, &model::Frame::function);
  const auto same = std::ranges::find(parent, model::kSignalFrame, &model::Frame::function);
  if (handler == child.end() || same == parent.end() || child.end() - handler != parent.end() - same) return;
  const bool is_same =
      std::equal(handler + 1, child.end(), same + 1, parent.end(),
                 [](const auto& one, const auto& two) { return one.module == two.module && one.offset == two.offset; });
  if (!is_same) return;
  fork.stack.frames.assign(handler == child.begin() ? handler : handler - 1, child.end());
}

void Builder::add_pools(model::Fork& fork) {
  std::map<std::pair<model::Owner, std::string>, std::size_t> known;
  for (const model::ThreadId id : fork.lost_threads) {
    const model::Thread& thread = scene_.model.threads[id];
    const std::string library(model::find_owning_library(thread));
    const auto [at, is_new] = known.try_emplace({thread.owner, library}, fork.thread_pools.size());
    if (is_new) fork.thread_pools.push_back({thread.owner, library, {}, 0, model::PoolState::kLost});
    model::ThreadPool& pool = fork.thread_pools[at->second];
    ++pool.before;
    pool.threads.push_back(id);
  }
  for (model::ThreadPool& pool : fork.thread_pools) pool.state = model::find_pool_state(pool, fork, {});
}

// Explains each thread of a stuck process. A process that is awake is left out, because its stacks show its ordinary
// work. A victim is left out, because another process is the reason why it waits.
void Builder::explain_all(std::size_t subject, std::optional<model::ForkId> fork) {
  if (!scene_.is_stuck(subject) || scene_.subjects[subject].is_in_vfork) return;
  const std::size_t first_touch = scene_.model.touches.size();
  for (const image::Thread& thread : scene_.subjects[subject].image.threads) {
    if (fork) explain(scene_, lost_, subject, thread, *fork, find_fork_of_loss(*fork));
    if (fork || scene_.subjects[subject].is_forked == false) find_ended_owner(scene_, subject, thread);
  }
  drop_weaker_findings(scene_, subject, first_touch);
}

void Builder::build(std::vector<std::vector<model::Wait>> waits) {
  for (std::size_t subject = 0; subject < scene_.subjects.size(); ++subject) {
    add_process(subject, std::move(waits[subject]));
  }
  find_interesting();
  for (std::size_t subject = 0; subject < scene_.subjects.size(); ++subject) add_threads(subject);
  find_semaphore_holders(scene_);
  for (std::size_t subject = 0; subject < scene_.subjects.size(); ++subject) {
    if (const auto fork = add_fork(subject)) scene_.forks.emplace(subject, *fork);
  }
  for (std::size_t subject = 0; subject < scene_.subjects.size(); ++subject) {
    const auto found = scene_.forks.find(subject);
    const auto fork = found == scene_.forks.end() ? std::nullopt : std::optional(found->second);
    name_inherited_owners(scene_, subject);
    set_never_had_other_threads(scene_, subject);
    for (const image::Thread& thread : scene_.subjects[subject].image.threads) {
      if (scene_.facts_of(subject, thread.tid).call.is_in_fork) {
        add_stuck_handler(scene_, subject, thread, fork);
      }
    }
    explain_all(subject, fork);
    for (const std::string& limit : scene_.subjects[subject].image.limits) scene_.model.limits.push_back(limit);
  }
  scene_.tell_limits();
}

}  // namespace

namespace {

model::Model build(const std::vector<Subject>& subjects, std::vector<std::vector<model::Wait>> waits,
                   std::vector<PythonLocals>* locals) {
  model::Model model;
  Builder(subjects, model, locals).build(std::move(waits));
  for (std::string& sentence : tell_java_locks(model)) model.limits.push_back(std::move(sentence));
  return model;
}

}  // namespace

model::Model build_model(const std::vector<Subject>& subjects, std::vector<PythonLocals>* locals) {
  std::vector<std::vector<model::Wait>> waits;
  for (const Subject& subject : subjects) waits.push_back(subject.waits);
  return build(subjects, std::move(waits), locals);
}

model::Model build_model(std::vector<Subject>&& subjects) {
  std::vector<Subject> own = std::move(subjects);
  std::vector<std::vector<model::Wait>> waits;
  for (Subject& subject : own) waits.push_back(std::move(subject.waits));
  return build(own, std::move(waits), nullptr);
}

}  // namespace forksight::inspect
