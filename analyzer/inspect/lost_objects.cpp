#include "inspect/lost_objects.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "forksight/abi/stream_lock.hpp"
#include "inspect/lineage.hpp"
#include "inspect/lock_references.hpp"
#include "inspect/lost_libc_calls.hpp"
#include "inspect/lost_pools.hpp"
#include "inspect/lost_python_locks.hpp"
#include "inspect/own_waits.hpp"
#include "inspect/read_lock.hpp"
#include "model/base_name.hpp"

namespace forksight::inspect {
namespace {

using model::LockKind;

bool is_shared(const image::Image& image, std::uint64_t address) {
  const proc::Mapping* const mapping = image.mapping_of(address);
  return mapping != nullptr && mapping->shared;
}

bool has_thread(const image::Image& image, std::int32_t tid) {
  const auto thread = std::ranges::find(image.threads, tid, &image::Thread::tid);
  return thread != image.threads.end() && !thread->has_ended;
}

// True if the process lists `tid` as an ended thread. Only the first thread of the process can be such a thread: the
// kernel lists the first thread until the last thread has ended.
bool lists_as_ended(const image::Image& image, std::int32_t tid) {
  const auto thread = std::ranges::find(image.threads, tid, &image::Thread::tid);
  return thread != image.threads.end() && thread->has_ended;
}

model::SyncOperation operation_of(CallKind kind) {
  switch (kind) {
    case CallKind::kConditionSignal: return model::SyncOperation::kSignal;
    case CallKind::kConditionBroadcast: return model::SyncOperation::kBroadcast;
    case CallKind::kConditionDestroy:
    case CallKind::kBarrierDestroy: return model::SyncOperation::kDestroy;
    case CallKind::kBarrierWait: return model::SyncOperation::kWait;
    default: return model::SyncOperation::kNone;
  }
}

model::TouchKind touch_kind_of(CallKind kind) {
  switch (kind) {
    case CallKind::kConditionSignal:
    case CallKind::kConditionBroadcast:
    case CallKind::kConditionDestroy: return model::TouchKind::kCondition;
    case CallKind::kBarrierWait:
    case CallKind::kBarrierDestroy: return model::TouchKind::kBarrier;
    default: return model::TouchKind::kLock;
  }
}

// An object that a fork broke.
struct Lost {
  model::Held held;
  model::ForkId fork = 0;
};

// Returns the fork that left the owner of a lock behind. A new thread gets a higher id than the threads before it. So
// if `owner` is below the pid of the process that forked, the owner is a thread of an ancestor of that process. Then an
// earlier fork left the owner behind. The result is the latest fork by a process that may have had such a thread.
model::ForkId find_fork_of_owner(const Scene& scene, std::size_t child, std::int32_t owner, model::ForkId fork) {
  const image::Image& image = scene.subjects[child].image;
  if (image.own_pid() != image.pid) return fork;  // the process is in a pid namespace of its own
  for (std::size_t steps = 0; steps < scene.subjects.size(); ++steps) {
    const std::size_t parent = scene.model.forks[fork].process;
    const auto before = scene.forks.find(parent);
    if (owner >= scene.subjects[parent].image.pid || before == scene.forks.end()) break;
    fork = before->second;
  }
  return fork;
}

// Sets in `lost` which thread holds the lock, and which fork left that thread behind. False if no fork is the reason
// why `state.owner` still holds the lock.
bool name_lost_owner(Scene& scene, LostThreads& threads, std::size_t child, const StuckCall& call,
                     const libc::LockState& state, LockKind kind, Lost& lost) {
  const image::Image& image = scene.subjects[child].image;
  // If the owner is a thread of the child, no fork is the cause: the child's threads deadlock by themselves, or the
  // child's first thread ended while it held the lock.
  std::int32_t number = state.owner;
  if (has_thread(image, state.owner) || lists_as_ended(image, state.owner)) {
    if (!image.has_two_numberings) return false;
    lost.held.may_have_been_free = true;
    number = image.own_number_of(state.owner);
  }
  const Namesake owner = find_namesake(scene, child, number);
  // The other reading of the number must name a lost thread.
  if (lost.held.may_have_been_free && owner.ancestry != Ancestry::kLost) return false;
  if (owner.ancestry == Ancestry::kUnknown) {
    lost.fork = find_fork_of_owner(scene, child, state.owner, lost.fork);
    const model::Fork& fork = scene.model.forks[lost.fork];
    lost.held.may_be_own = may_be_own(scene, child, state.owner, fork);
    const bool has_ended = has_lost_none(scene, child);
    if (has_ended && lost.held.may_be_own) return false;
    lost.held.holder = threads.add_lost_owner(state.owner, fork);
    scene.model.threads[lost.held.holder].has_ended = has_ended;
    return true;
  }
  // If the child's first thread holds a plain mutex, it can unlock the mutex: see name_inherited_owners().
  const bool is_own = owner.ancestry == Ancestry::kSelf;
  if (is_own && kind == LockKind::kMutex && !state.checks_owner()) return false;
  lost.fork = owner.fork;
  lost.held.holder = owner.thread;
  lost.held.by_forking_thread = is_own;
  // If the holder still holds the parent's copy of the lock, the holder's present stack shows what it does with the
  // lock.
  const model::ProcessId parent = scene.model.forks[owner.fork].process;
  const auto in_parent = read_lock(scene.subjects[parent].image, kind, call.object);
  const std::int32_t tid = scene.model.threads[owner.thread].tid;
  if (in_parent && in_parent->held && in_parent->owner == tid) lost.held.holder_now = scene.facts_of(parent, tid).stack;
  return true;
}

// True if `call` waits as a reader, and another thread of the child waits as a writer for the same lock. If a lock
// prefers writers, readers also wait for a waiting writer.
bool waits_behind_own_writer(const Scene& scene, std::size_t child, const StuckCall& call) {
  return call.kind == CallKind::kRwlockRead &&
         std::ranges::any_of(scene.subjects[child].image.threads, [&](const image::Thread& thread) {
           const StuckCall& other = scene.facts_of(child, thread.tid).call;
           return other.kind == CallKind::kRwlockWrite && other.object == call.object;
         });
}

bool is_in_python(const model::Stack& stack) {
  return std::ranges::any_of(stack.frames, [](const model::Frame& frame) {
    const std::string_view name = model::base_name(frame.module);
    return name.starts_with("python3") || name.starts_with("libpython3");
  });
}

// True if the parent shows no taken lock at the address of the child's lock. Memory of another object often begins with
// a zero, as the memory of a taken semaphore does. So for Python, which makes a semaphore for each lock, the parent
// must also have a pointer to the semaphore where the child has one.
bool may_have_been_free(Scene& scene, std::size_t child, const StuckCall& call, LockKind kind,
                        const model::Fork& fork) {
  const image::Image& parent = scene.subjects[fork.process].image;
  const auto in_parent = read_lock(parent, kind, call.object);
  if (!in_parent) return false;
  if (!in_parent->held) return true;
  return kind == LockKind::kSemaphore && is_in_python(call.stack) &&
         !scene.lock_copies.has_same_pointer(scene.subjects[child].image, parent, call.object);
}

std::optional<Lost> lost_lock(Scene& scene, LostThreads& threads, std::size_t child, const StuckCall& call,
                              model::ForkId fork) {
  const image::Image& image = scene.subjects[child].image;
  LockKind kind = LockKind::kMutex;
  switch (call.kind) {
    case CallKind::kMutex: break;
    case CallKind::kRwlockRead:
    case CallKind::kRwlockWrite: kind = LockKind::kRwlockWrite; break;
    case CallKind::kSpinlock: kind = LockKind::kSpinlock; break;
    case CallKind::kSemaphore: kind = LockKind::kSemaphore; break;
    default: return std::nullopt;
  }
  auto state = read_lock(image, kind, call.object);
  if (kind == LockKind::kRwlockWrite && state && !state->held) {
    kind = LockKind::kRwlockRead;
    state = read_lock(image, kind, call.object);
  }
  if (!state || !state->held || state->process_shared || is_shared(image, call.object)) return std::nullopt;
  Lost lost;
  lost.fork = fork;
  if (state->owner != 0) {
    if (!name_lost_owner(scene, threads, child, call, *state, kind, lost)) return std::nullopt;
  } else {
    // The lock names no owner: a spinlock is only locked or not, a rwlock counts its readers, and a semaphore counts
    // units. If no fork lost a thread, no lost thread is the owner.
    if (has_lost_none(scene, child)) return std::nullopt;
    if (kind == LockKind::kRwlockRead && waits_behind_own_writer(scene, child, call)) return std::nullopt;
    lost.held.holder = threads.other_thread(scene.model.forks[fork]);
    lost.held.may_have_been_free = may_have_been_free(scene, child, call, kind, scene.model.forks[fork]);
  }
  lost.held.lock = scene.add_lock(child, call.object, kind);
  return lost;
}

// Condition variables and barriers count their waiters. If the count is greater than the number of the child's own
// waiters, the count includes lost threads. If a thread of the parent waits for the object now, this thread is taken
// for one of these lost threads.
std::optional<model::Held> lost_waiters(Scene& scene, LostThreads& lost, std::size_t child, const StuckCall& call,
                                        const model::Fork& fork) {
  const image::Image& image = scene.subjects[child].image;
  const bool is_barrier = call.kind == CallKind::kBarrierWait || call.kind == CallKind::kBarrierDestroy;
  if (!is_barrier && touch_kind_of(call.kind) != model::TouchKind::kCondition) return std::nullopt;
  const LockKind kind = is_barrier ? LockKind::kBarrier : LockKind::kCondition;
  const auto state = read_lock(image, kind, call.object);
  if (!state || state->process_shared || is_shared(image, call.object)) return std::nullopt;
  const auto own = static_cast<std::uint32_t>(std::ranges::count_if(image.threads, [&](const image::Thread& thread) {
    const StuckCall& other = scene.facts_of(child, thread.tid).call;
    return other.object == call.object &&
           (other.kind == CallKind::kBarrierWait || other.kind == CallKind::kConditionWait);
  }));
  if (state->waiters <= own) return std::nullopt;
  model::Held held;
  held.waiters = state->waiters - own;
  const auto is_waiting = [&](model::ThreadId id) {
    const StuckCall& other = scene.facts_of(fork.process, scene.model.threads[id].tid).call;
    const bool waits = other.kind == (is_barrier ? CallKind::kBarrierWait : CallKind::kConditionWait);
    return waits && other.object == call.object;
  };
  // If more threads of the parent wait for the object now than the object counted at the fork, it is not known which of
  // them waited at the fork.
  const auto waiter = std::ranges::find_if(fork.lost_threads, is_waiting);
  const auto waiting = static_cast<std::uint32_t>(std::ranges::count_if(fork.lost_threads, is_waiting));
  if (waiter != fork.lost_threads.end() && waiting <= held.waiters) {
    held.holder = *waiter;
    held.holder_now = scene.facts_of(fork.process, scene.model.threads[*waiter].tid).stack;
  } else {
    held.holder = lost.other_thread(fork);
  }
  held.lock = scene.add_lock(child, call.object, kind);
  return held;
}

// Finds the thread of the parent that initialises a static variable. That thread is inside of the function with the
// variable, and does not wait for the variable.
std::optional<model::Held> lost_initialiser(Scene& scene, LostThreads& lost, std::size_t child, const StuckCall& call,
                                            const model::Fork& fork) {
  if (call.kind != CallKind::kGuard || call.stack.frames.empty()) return std::nullopt;
  const auto state = read_lock(scene.subjects[child].image, LockKind::kGuard, call.object);
  if (!state || !state->held) return std::nullopt;
  const std::string& function = call.stack.frames.front().function;
  const auto is_initialising = [&](std::size_t subject, std::int32_t tid) {
    const ThreadFacts& facts = scene.facts_of(subject, tid);
    // If the function has called itself, the thread that initialises the variable may also wait for the variable. Then
    // the function is twice on the stack.
    const bool waits_for_it = facts.call.kind == CallKind::kGuard && facts.call.object == call.object;
    return !function.empty() &&
           std::ranges::count(facts.stack.frames, function, &model::Frame::function) > (waits_for_it ? 1 : 0);
  };
  // If a thread of the child itself initialises the variable, the fork is not the cause.
  const bool is_own = std::ranges::any_of(scene.subjects[child].image.threads, [&](const image::Thread& thread) {
    return is_initialising(child, thread.tid);
  });
  if (is_own || has_lost_none(scene, child)) return std::nullopt;
  const auto initialiser =
      lost.find_only(fork, [&](const model::Thread& thread) { return is_initialising(fork.process, thread.tid); });
  model::Held held;
  held.holder = initialiser ? *initialiser : lost.other_thread(fork);
  held.may_be_own = !initialiser && scene.subjects[child].image.threads.size() > 1;
  if (initialiser) held.holder_now = scene.facts_of(fork.process, scene.model.threads[*initialiser].tid).stack;
  held.lock = scene.add_lock(child, call.object, LockKind::kGuard);
  return held;
}

std::optional<Lost> lost_object(Scene& scene, LostThreads& threads, std::size_t child, const StuckCall& call,
                                model::ForkId fork) {
  if (call.object == 0) return std::nullopt;
  if (auto lost = lost_lock(scene, threads, child, call, fork)) return lost;
  if (call.kind == CallKind::kPythonLock) {
    auto held = find_lost_python_lock(scene, threads, child, call, scene.model.forks[fork]);
    return held ? std::optional(Lost{std::move(*held), fork}) : std::nullopt;
  }
  auto held = lost_waiters(scene, threads, child, call, scene.model.forks[fork]);
  if (!held) held = lost_initialiser(scene, threads, child, call, scene.model.forks[fork]);
  return held ? std::optional(Lost{std::move(*held), fork}) : std::nullopt;
}

// If a child waits for the lock of stdin, stdout or stderr, notes this in `fork` and returns true. fork() resets these
// locks in the child. So the child was made by a call that runs no atfork handler.
bool note_stream(Scene& scene, std::size_t child, const StuckCall& call, model::Fork& fork) {
  constexpr std::string_view kPrefix = "_IO_stdfile_";
  std::string name;
  std::string module;
  if (call.kind != CallKind::kFutex || !scene.name_data(child, call.word, name, module)) return false;
  if (!name.starts_with(kPrefix) || name.size() <= kPrefix.size() || !is_libc(module)) return false;
  const int number = name[kPrefix.size()] - '0';
  if (number < 0 || number > 2) return false;
  fork.bypassed = true;
  model::LockedStream stream;
  stream.lock = call.word;
  stream.number = number;
  const image::Image& image = scene.subjects[child].image;
  std::optional<std::uint64_t> owner;
  if (abi::StreamLock::kVersions.have(image.libc.version)) {
    owner = image.memory->value<std::uint64_t>(call.word + offsetof(abi::StreamLock, owner));
  }
  const auto holder = std::ranges::find_if(
      fork.lost_threads, [&](model::ThreadId id) { return owner && scene.model.threads[id].pointer == *owner; });
  stream.thread = holder != fork.lost_threads.end() ? *holder : scene.unknown_thread(fork.process);
  fork.streams.push_back(stream);
  return true;
}

}  // namespace

void find_ended_owner(Scene& scene, std::size_t subject, const image::Thread& thread) {
  const StuckCall& call = scene.facts_of(subject, thread.tid).call;
  const image::Image& image = scene.subjects[subject].image;
  const bool is_rwlock = call.kind == CallKind::kRwlockRead || call.kind == CallKind::kRwlockWrite;
  if ((call.kind != CallKind::kMutex && !is_rwlock) || call.object == 0 || is_shared(image, call.object)) return;
  if (image.has_two_numberings) return;  // the owner may be a thread that a fork left behind
  const LockKind kind = is_rwlock ? LockKind::kRwlockWrite : LockKind::kMutex;
  const auto state = read_lock(image, kind, call.object);
  if (!state || !state->held || state->process_shared || state->owner <= 0 || has_thread(image, state->owner)) return;
  // In a forked process, the owner may be a lost thread. explain() reports that case. Only an ended first thread is
  // known to be a thread of the process itself.
  if (scene.forks.contains(subject) && !lists_as_ended(image, state->owner)) return;
  // An id below the pid belongs to a thread of an ancestor. In a core this happens if _Fork() or clone() made the
  // process, because glibc does not count these calls as forks.
  if (image.is_core && state->owner < image.pid) return;
  model::Held held;
  held.holder = scene.unknown_thread(subject);
  scene.model.threads[held.holder].tid = state->owner;
  scene.model.threads[held.holder].has_ended = true;
  held.lock = scene.add_lock(subject, call.object, kind);
  model::Fork fork;
  fork.process = subject;
  fork.forking_thread = scene.facts_of(subject, thread.tid).id;
  fork.is_inferred = true;
  fork.held.push_back(std::move(held));
  scene.model.forks.push_back(std::move(fork));
}

void explain(Scene& scene, LostThreads& lost, std::size_t subject, const image::Thread& thread, model::ForkId fork_id,
             model::ForkId loss_id) {
  const StuckCall& call = scene.facts_of(subject, thread.tid).call;
  model::Fork& fork = scene.model.forks[fork_id];
  const std::string blas_runtime = find_runtime_of_blas(scene, subject, call, scene.model.forks[loss_id]);
  if (call.kind == CallKind::kUnknown && blas_runtime.empty()) return;
  model::Touch touch;
  touch.fork = fork_id;
  touch.process = subject;
  touch.tid = thread.tid;
  touch.stack = call.stack;
  touch.timed = call.is_timed;
  if (call.is_in_exit) {
    model::Touch exit = touch;
    exit.kind = model::TouchKind::kExit;
    scene.model.touches.push_back(std::move(exit));
  }
  if (call.kind == CallKind::kLibcCall) return touch_libc_call(scene, lost, std::move(touch), call, fork);
  // A pool belongs to the thread that made it. Only the first thread of a child is a copy of a thread that had a pool.
  // The other threads of the child use pools that were made after the fork.
  if (call.kind == CallKind::kParallel && thread.tid != scene.subjects[subject].image.pid) return;
  if (call.kind == CallKind::kParallel || !blas_runtime.empty()) {
    StuckCall region = call;
    if (call.kind != CallKind::kParallel) {
      region.library = blas_runtime;
      // The thread spins inside of the region. The report shows where the program entered the region.
      const auto is_runtime = [](const model::Frame& frame) { return is_libgomp(frame.module); };
      auto& frames = touch.stack.frames;
      const auto entry = std::ranges::find_if(frames, is_runtime);
      if (entry != frames.end()) frames.erase(frames.begin(), std::find_if_not(entry, frames.end(), is_runtime));
    }
    touch.fork = loss_id;
    return touch_region(scene, std::move(touch), region, scene.model.forks[loss_id]);
  }
  if (note_stream(scene, subject, call, fork)) return;
  auto broken = is_in_lost_pool(call, scene.model.forks[loss_id]) ? std::nullopt
                                                                  : lost_object(scene, lost, subject, call, fork_id);
  if (broken) {
    auto& all = scene.model.forks[broken->fork].held;
    touch.fork = broken->fork;
    touch.kind = touch_kind_of(call.kind);
    touch.operation = operation_of(call.kind);
    const model::LockKind kind = scene.model.locks[broken->held.lock].kind;
    touch.by_owner = kind == model::LockKind::kMutex || kind == model::LockKind::kRwlockWrite;
    touch.held = all.size();
    all.push_back(std::move(broken->held));
    scene.model.touches.push_back(std::move(touch));
    return;
  }
  if (call.word == 0 || call.is_timed || find_own_holder(scene, subject, call) != 0) return;
  // The wait may be one for a thread of the process itself. Then no fork is the cause.
  const bool names_thread = call.kind == CallKind::kMutex || call.kind == CallKind::kRwlockRead ||
                            call.kind == CallKind::kRwlockWrite || call.kind == CallKind::kJoin;
  if (names_thread && scene.subjects[subject].image.has_two_numberings) return;
  touch.kind = model::TouchKind::kFutexWait;
  touch.fork = loss_id;
  touch.object = call.object;
  touch.value = call.value;
  touch.has_handlers = scene.subjects[subject].liveness == model::Liveness::kDeadButForSignal;
  scene.name_data(subject, call.object, touch.object_name, touch.object_module);
  add_lock_references(scene, subject, thread, scene.model.forks[loss_id], touch);
  scene.model.touches.push_back(std::move(touch));
}

}  // namespace forksight::inspect
