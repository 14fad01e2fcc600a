// What a child waits for that its fork broke: the same facts as the shim records when the child touches it, read out of
// the child's memory after the event. Who holds it is read from the lock, or from what the parent's threads are in now.
#include <algorithm>
#include <string_view>

#include "forksight/abi/stream_lock.hpp"
#include "inspect/builder.hpp"
#include "inspect/places.hpp"
#include "inspect/read_lock.hpp"

namespace forksight::inspect {
namespace {

using model::LockKind;

bool is_shared(const image::Image& image, std::uint64_t address) {
  const proc::Mapping* const mapping = image.mapping_of(address);
  return mapping != nullptr && mapping->shared;
}

bool has_thread(const image::Image& image, std::int32_t tid) {
  return std::ranges::find(image.threads, tid, &image::Thread::tid) != image.threads.end();
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

}  // namespace

// Of a process that is no fork: a mutex of its own, whose owner is none of its threads, was left locked by one that has
// ended. Told as of a fork of the process that is to come: that one would inherit it.
void Builder::find_ended_owner(std::size_t subject, const image::Thread& thread) {
  const StuckCall& call = facts_of(subject, thread.tid).call;
  const image::Image& image = subjects_[subject].image;
  if (call.kind != CallKind::kMutex || call.object == 0 || is_shared(image, call.object)) return;
  const auto state = read_lock(image, LockKind::kMutex, call.object);
  if (!state || !state->held || state->process_shared || state->owner <= 0 || has_thread(image, state->owner)) return;
  // Of a core: by its number it is no thread of this process, but of one that made it by _Fork() or clone().
  if (image.is_core && state->owner < image.pid) return;
  model::Held held;
  held.holder = unknown_thread(subject);
  model_.threads[held.holder].tid = state->owner;
  model_.threads[held.holder].has_ended = true;
  held.lock = add_lock(subject, call.object, LockKind::kMutex);
  model::Fork fork;
  fork.process = subject;
  fork.forking_thread = facts_of(subject, thread.tid).id;
  fork.is_inferred = true;
  fork.held.push_back(std::move(held));
  model_.forks.push_back(std::move(fork));
}

model::LockId Builder::add_lock(std::size_t subject, std::uint64_t address, LockKind kind) {
  model::Lock lock;
  lock.address = address;
  lock.kind = kind;
  if (const auto state = read_lock(subjects_[subject].image, kind, address)) {
    lock.type = state->type;
    lock.robust = state->robust;
    lock.priority_inherit = state->priority_inherit;
    lock.process_shared = state->process_shared;
  }
  if (!name_data(subject, address, lock.name, lock.module)) {
    lock.place = describe_place(subjects_[subject].image, address);
  }
  model_.locks.push_back(std::move(lock));
  return model_.locks.size() - 1;
}

// A tid that is no thread of the child: one of the parent's, or one that has ended since.
std::optional<model::ThreadId> Builder::find_owner(std::size_t child, std::int32_t tid, const model::Fork& fork) const {
  if (tid <= 0 || has_thread(subjects_[child].image, tid)) return std::nullopt;
  const auto at = facts_.find({fork.process, tid});
  return at == facts_.end() ? std::nullopt : std::optional(at->second.id);
}

std::optional<model::Held> Builder::lost_lock(std::size_t child, const StuckCall& call, const model::Fork& fork) {
  const image::Image& image = subjects_[child].image;
  LockKind kind = LockKind::kMutex;
  switch (call.kind) {
    case CallKind::kMutex: break;
    case CallKind::kRwlockRead:
    case CallKind::kRwlockWrite: kind = LockKind::kRwlockWrite; break;
    case CallKind::kSpinlock: kind = LockKind::kSpinlock; break;
    case CallKind::kSemaphore: kind = LockKind::kSemaphore; break;
    default: return std::nullopt;
  }
  const image::Image* const parent = &subjects_[fork.process].image;
  auto state = read_lock(image, kind, call.object, parent);
  if (kind == LockKind::kRwlockWrite && state && !state->held) {
    kind = LockKind::kRwlockRead;
    state = read_lock(image, kind, call.object, parent);
  }
  if (!state || !state->held || state->process_shared || is_shared(image, call.object)) return std::nullopt;
  model::Held held;
  if (state->owner != 0) {
    if (has_thread(image, state->owner)) return std::nullopt;  // a deadlock of the child's own
    const auto owner = find_owner(child, state->owner, fork);
    if (owner) {
      held.holder = *owner;
    } else {
      held.holder = add_lost_owner(state->owner, fork);
    }
    held.by_forking_thread = held.holder == fork.forking_thread;
    held.may_be_own = may_be_forking_thread(child, state->owner, fork);
    // It is where it is because it has the lock, as long as the parent's copy of the lock says so, too.
    const auto in_parent = read_lock(*parent, kind, call.object);
    const bool still_holds = owner && in_parent && in_parent->held && in_parent->owner == state->owner;
    if (still_holds) held.holder_now = facts_of(fork.process, state->owner).stack;
  } else {
    held.holder = other_thread(fork);
  }
  held.lock = add_lock(child, call.object, kind);
  return held;
}

// Condition variables and barriers count who waits there; the parent's threads that still do are named.
std::optional<model::Held> Builder::lost_waiters(std::size_t child, const StuckCall& call, const model::Fork& fork) {
  const image::Image& image = subjects_[child].image;
  const bool is_barrier = call.kind == CallKind::kBarrierWait || call.kind == CallKind::kBarrierDestroy;
  if (!is_barrier && touch_kind_of(call.kind) != model::TouchKind::kCondition) return std::nullopt;
  const LockKind kind = is_barrier ? LockKind::kBarrier : LockKind::kCondition;
  const auto state = read_lock(image, kind, call.object);
  if (!state || state->process_shared || is_shared(image, call.object)) return std::nullopt;
  const auto own = static_cast<std::uint32_t>(std::ranges::count_if(image.threads, [&](const image::Thread& thread) {
    const StuckCall& other = facts_of(child, thread.tid).call;
    return other.object == call.object &&
           (other.kind == CallKind::kBarrierWait || other.kind == CallKind::kConditionWait);
  }));
  if (state->waiters <= own) return std::nullopt;
  model::Held held;
  held.waiters = state->waiters - own;
  const auto is_waiting = [&](model::ThreadId id) {
    const StuckCall& other = facts_of(fork.process, model_.threads[id].tid).call;
    const bool waits = other.kind == (is_barrier ? CallKind::kBarrierWait : CallKind::kConditionWait);
    return waits && other.object == call.object;
  };
  const auto waiter = std::ranges::find_if(fork.lost_threads, is_waiting);
  if (waiter != fork.lost_threads.end()) {
    held.holder = *waiter;
    held.holder_now = facts_of(fork.process, model_.threads[*waiter].tid).stack;
  } else {
    held.holder = other_thread(fork);
  }
  held.lock = add_lock(child, call.object, kind);
  return held;
}

// A thread of the parent that is inside of the function whose static it is, and does not wait for it like the child.
std::optional<model::Held> Builder::lost_initialiser(std::size_t child, const StuckCall& call,
                                                     const model::Fork& fork) {
  if (call.kind != CallKind::kGuard || call.stack.frames.empty()) return std::nullopt;
  const auto state = read_lock(subjects_[child].image, LockKind::kGuard, call.object);
  if (!state || !state->held) return std::nullopt;
  const std::string& function = call.stack.frames.front().function;
  const auto is_initialising = [&](std::size_t subject, std::int32_t tid) {
    const ThreadFacts& facts = facts_of(subject, tid);
    // Who waits for it, too, is in the function once.
    const bool waits_for_it = facts.call.kind == CallKind::kGuard && facts.call.object == call.object;
    return !function.empty() &&
           std::ranges::count(facts.stack.frames, function, &model::Frame::function) > (waits_for_it ? 1 : 0);
  };
  // A static of the child's own making: no fork is to blame.
  const bool is_own = std::ranges::any_of(
      subjects_[child].image.threads, [&](const image::Thread& thread) { return is_initialising(child, thread.tid); });
  if (is_own) return std::nullopt;
  const auto initialiser =
      find_only(fork, [&](const model::Thread& thread) { return is_initialising(fork.process, thread.tid); });
  model::Held held;
  held.holder = initialiser ? *initialiser : other_thread(fork);
  if (initialiser) held.holder_now = facts_of(fork.process, model_.threads[*initialiser].tid).stack;
  held.lock = add_lock(child, call.object, LockKind::kGuard);
  return held;
}

std::optional<model::Held> Builder::lost_object(std::size_t child, const StuckCall& call, const model::Fork& fork) {
  if (call.object == 0) return std::nullopt;
  if (auto held = lost_lock(child, call, fork)) return held;
  if (auto held = lost_waiters(child, call, fork)) return held;
  return lost_initialiser(child, call, fork);
}

void Builder::touch_region(model::Touch touch, const StuckCall& call, model::Fork& fork) {
  model::Pool pool;
  pool.kind = model::RuntimeKind::kLibgomp;
  pool.library = call.library;
  pool.in_region = is_in_region(touch.process, fork);
  for (const model::ThreadId id : fork.lost_threads) {
    const model::Thread& thread = model_.threads[id];
    if (thread.start_library == call.library) pool.workers.push_back(id);
  }
  pool.workers_lost = static_cast<std::uint32_t>(pool.workers.size());
  pool.workers_before = pool.workers_lost;
  pool.workers_total = pool.workers_lost;
  add_other_runtimes(touch.process, fork);
  touch.kind = model::TouchKind::kParallel;
  touch.pool = model_.pools.size();
  fork.pools.push_back(model_.pools.size());
  model_.pools.push_back(std::move(pool));
  model_.touches.push_back(std::move(touch));
}

// The wait of a library for its own pool looks like a lock of whatever kind the pool is built on.
bool Builder::is_in_lost_pool(const StuckCall& call, const model::Fork& fork) const {
  if (call.kind == CallKind::kMutex || call.stack.frames.empty()) return false;
  const model::Owner owner = model::find_owner_of_library(call.stack.frames.front().module);
  if (owner == model::Owner::kUnknown || owner == model::Owner::kPython || owner == model::Owner::kStdThread)
    return false;
  return std::ranges::any_of(fork.thread_pools, [&](const model::ThreadPool& pool) {
    return pool.owner == owner && pool.state == model::PoolState::kLost;
  });
}

// The forking thread of the parent is in a region still, and the child's stack has the same one further out. A teams
// region is no team of threads.
bool Builder::is_in_region(std::size_t child, const model::Fork& fork) const {
  const auto outermost = [](const model::Stack& stack) -> const model::Frame* {
    for (std::size_t i = stack.frames.size(); i-- > 1;) {
      const model::Frame& inner = stack.frames[i - 1];
      if (is_libgomp(inner.module) && !is_libgomp(stack.frames[i].module) && inner.function != "GOMP_teams_reg") {
        return &stack.frames[i];
      }
    }
    return nullptr;
  };
  const model::Frame* const mine = outermost(facts_of(child, model_.processes[child].pid).stack);
  const model::Frame* const theirs = outermost(facts_of(fork.process, model_.threads[fork.forking_thread].tid).stack);
  return mine != nullptr && theirs != nullptr && mine->module == theirs->module && mine->offset == theirs->offset;
}

// Runtimes that make their pool anew in the child: which one a program got decides who hangs.
void Builder::add_other_runtimes(std::size_t child, model::Fork& fork) {
  for (const symbols::Module& module : subjects_[child].image.modules) {
    const model::Owner owner = model::find_owner_of_library(module.path);
    if (owner != model::Owner::kLibomp && owner != model::Owner::kLibiomp5) continue;
    model::Pool pool;
    pool.kind = owner == model::Owner::kLibomp ? model::RuntimeKind::kLibomp : model::RuntimeKind::kLibiomp5;
    pool.library = module.path;
    pool.rebuilds_itself = true;
    fork.pools.push_back(model_.pools.size());
    model_.pools.push_back(std::move(pool));
  }
}

// fork() re-initialises the locks of streams in the child: one that is taken there proves that fork() was not called.
bool Builder::note_stream(std::size_t child, const StuckCall& call, model::Fork& fork) {
  constexpr std::string_view kPrefix = "_IO_stdfile_";
  std::string name;
  std::string module;
  if (call.kind != CallKind::kFutex || !name_data(child, call.word, name, module)) return false;
  if (!name.starts_with(kPrefix) || name.size() <= kPrefix.size() || !is_libc(module)) return false;
  const int number = name[kPrefix.size()] - '0';
  if (number < 0 || number > 2) return false;
  fork.bypassed = true;
  model::LockedStream stream;
  stream.lock = call.word;
  stream.number = number;
  const image::Image& image = subjects_[child].image;
  std::optional<std::uint64_t> owner;
  if (abi::StreamLock::kVersions.have(image.libc.version)) {
    owner = image.memory->value<std::uint64_t>(call.word + offsetof(abi::StreamLock, owner));
  }
  const auto holder = std::ranges::find_if(
      fork.lost_threads, [&](model::ThreadId id) { return owner && model_.threads[id].pointer == *owner; });
  stream.thread = holder != fork.lost_threads.end() ? *holder : unknown_thread(fork.process);
  fork.streams.push_back(stream);
  return true;
}

// OpenBLAS's OpenMP build asks for a partner and spins, in its own code, until that one comes: a worker of libgomp.
std::string Builder::find_runtime_of_blas(std::size_t child, const StuckCall& call, const model::Fork& fork) const {
  if (subjects_[child].liveness != model::Liveness::kSpinning || call.stack.frames.empty()) return {};
  if (model::find_owner_of_library(call.stack.frames.front().module) != model::Owner::kOpenblas) return {};
  const auto pool = std::ranges::find(fork.thread_pools, model::Owner::kLibgomp, &model::ThreadPool::owner);
  return pool == fork.thread_pools.end() ? std::string() : pool->library;
}

void Builder::explain(std::size_t subject, const image::Thread& thread, model::ForkId fork_id) {
  const StuckCall& call = facts_of(subject, thread.tid).call;
  model::Fork& fork = model_.forks[fork_id];
  const std::string blas_runtime = find_runtime_of_blas(subject, call, fork);
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
    model_.touches.push_back(std::move(exit));
  }
  if (call.kind == CallKind::kLibcCall) return touch_libc_call(std::move(touch), call, fork);
  if (call.kind == CallKind::kParallel || !blas_runtime.empty()) {
    StuckCall region = call;
    if (call.kind != CallKind::kParallel) region.library = blas_runtime;
    return touch_region(std::move(touch), region, fork);
  }
  if (note_stream(subject, call, fork)) return;
  auto held = is_in_lost_pool(call, fork) ? std::nullopt : lost_object(subject, call, fork);
  if (held) {
    touch.kind = touch_kind_of(call.kind);
    touch.operation = operation_of(call.kind);
    const model::LockKind kind = model_.locks[held->lock].kind;
    touch.by_owner = kind == model::LockKind::kMutex || kind == model::LockKind::kRwlockWrite;
    touch.held = fork.held.size();
    fork.held.push_back(std::move(*held));
    model_.touches.push_back(std::move(touch));
    return;
  }
  if (call.word == 0 || call.is_timed || find_own_holder(subject, call) != 0) return;
  touch.kind = model::TouchKind::kFutexWait;
  touch.object = call.object;
  touch.value = call.value;
  touch.has_handlers = subjects_[subject].liveness == model::Liveness::kDeadButForSignal;
  name_data(subject, call.object, touch.object_name, touch.object_module);
  model_.touches.push_back(std::move(touch));
}

}  // namespace forksight::inspect
