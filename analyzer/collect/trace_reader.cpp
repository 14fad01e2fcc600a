#include "collect/trace_reader.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "collect/lock_layout.hpp"
#include "collect/trace_words.hpp"

namespace forksight::collect {

using trace::RecordType;

namespace {

constexpr std::size_t kMaxPools = 64;  // of one fork; the shim keeps fewer
constexpr std::size_t kNotHeld = static_cast<std::size_t>(-1);

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class T>
T element_at(std::span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

}  // namespace

TraceReader::TraceReader(const TraceFile& file, model::Model& model, ProcessTable& processes, bool symbolize)
    : file_(file), model_(model), processes_(processes), symbolize_(symbolize), first_fork_(model.forks.size()) {}

void TraceReader::read() {
  if (!file_.records().empty()) {
    creator_ = processes_.enter_creator(file_.info());
    by_pid_[file_.info().pid] = creator_;
    has_fork_[creator_] = true;
    for (const TraceRecord& record : file_.records()) read_record(record);
    attach_workers();
    if (symbolize_) deferred_.resolve(model_);
  }
  model_.limits.insert(model_.limits.end(), file_.limits().begin(), file_.limits().end());
  const auto say = [&](const std::string& what) { model_.limits.push_back(file_.name() + ": " + what); };
  if (bad_references_ > 0)
    say(fmt::format("{} references lead to no earlier record of the right type and were ignored", bad_references_));
  if (modules_left_out_ > 0)
    say(fmt::format("{} modules more than any process can have were left out", modules_left_out_));
  if (free_locks_touched_ > 0)
    say(fmt::format("{} operations on locks that nobody held at the fork were ignored", free_locks_touched_));
}

void TraceReader::read_record(const TraceRecord& record) {
  switch (record.type) {
    case RecordType::kModule: return read_module(record);
    case RecordType::kModuleGone: return;  // what comes to its place supersedes it
    case RecordType::kStack: return become(record, static_cast<std::size_t>(&record - file_.records().data()));
    case RecordType::kThread: return read_thread(record);
    case RecordType::kRuntime: return read_runtime(record);
    case RecordType::kHandlers: return become(record, 0);
    case RecordType::kFork: return read_fork(record);
    case RecordType::kForked: return read_forked(record);
    case RecordType::kHeld: return read_held(record);
    case RecordType::kTouch: return read_touch(record);
    case RecordType::kTouchEnd: return read_touch_end(record);
    case RecordType::kCure: return read_cure(record);
    case RecordType::kNote: return read_note(record);
  }
}

std::optional<TraceReader::Target> TraceReader::find(std::uint64_t reference, RecordType type) {
  if (reference == 0) return std::nullopt;
  const auto at = targets_.find(reference);
  if (at != targets_.end() && at->second.type == type) return at->second;
  ++bad_references_;
  return std::nullopt;
}

void TraceReader::become(const TraceRecord& record, std::size_t index, model::ForkId fork) {
  targets_[record.offset] = {record.type, index, fork};
}

void TraceReader::name_stack(model::ProcessId process, std::uint64_t reference,
                             DeferredSymbols::Place<model::Stack> place) {
  const auto stack = find(reference, RecordType::kStack);
  if (!stack || !symbolize_) return;
  deferred_.add_stack(modules_.image_of(process), file_.records()[stack->index], std::move(place));
}

model::ProcessId TraceReader::process_of(const TraceRecord& record) {
  const auto known = by_pid_.find(record.pid);
  if (known != by_pid_.end()) return known->second;
  const model::ProcessId process = processes_.enter_child(file_.info(), record.pid, 0, record.time_ns);
  by_pid_[record.pid] = process;
  modules_.inherit(process, creator_);
  return process;
}

model::ProcessId TraceReader::child_of(model::ForkId fork, std::int32_t pid, std::uint64_t time_ns) {
  model::Fork& about = model_.forks[fork];
  if (about.child) return *about.child;
  const std::int32_t parent_pid = model_.processes[about.process].pid;
  const auto known = by_pid_.find(pid);
  model::ProcessId child = 0;
  if (known != by_pid_.end() && !has_fork_[known->second] && known->second != about.process) {
    child = known->second;
    if (model_.processes[child].ppid == 0) model_.processes[child].ppid = parent_pid;
  } else {
    child = processes_.enter_child(file_.info(), pid, parent_pid, std::min(time_ns, about.time_ns));
    by_pid_[pid] = child;
    modules_.inherit(child, about.process);
  }
  has_fork_[child] = true;
  about.child = child;
  return child;
}

void TraceReader::read_module(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::ModuleRecord>();
  if (fixed.start >= fixed.end) return;
  symbols::Module module;
  module.path = text_of(record.tail<trace::ModuleRecord>().first(fixed.path_bytes));
  module.bias = fixed.bias;
  module.start = fixed.start;
  module.end = fixed.end;
  const auto id_bytes = std::min<std::size_t>(fixed.build_id_bytes, sizeof fixed.build_id);
  module.build_id.assign(fixed.build_id, fixed.build_id + id_bytes);
  if (!modules_.add(process_of(record), std::move(module))) ++modules_left_out_;
}

void TraceReader::read_thread(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::ThreadRecord>();
  const model::ProcessId process = process_of(record);
  const ImagePtr& image = modules_.image_of(process);
  const model::ThreadId id = model_.threads.size();
  model::Thread thread;
  thread.process = process;
  thread.tid = fixed.tid;
  thread.name.assign(fixed.name, ::strnlen(fixed.name, sizeof fixed.name));
  thread.creator_tid = fixed.creator_tid;
  thread.start_library = fixed.start_routine == 0 ? std::string() : image->find_path(fixed.start_routine);
  thread.is_main = (fixed.flags & trace::kThreadMain) != 0;
  model_.threads.push_back(std::move(thread));
  name_stack(
      process, fixed.creation_stack, [id](model::Model & m) -> auto& { return m.threads[id].created_at; });
  creation_stacks_[id] = fixed.creation_stack;
  if (symbolize_ && fixed.start_routine != 0) {
    deferred_.add_code(
        image, fixed.start_routine, [id](model::Model & m) -> auto& { return m.threads[id].start_routine; });
  }
  become(record, id);
}

void TraceReader::read_runtime(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::RuntimeRecord>();
  const model::ProcessId process = process_of(record);
  const model::PoolId id = model_.pools.size();
  model::Pool pool;
  pool.kind = to_model(fixed.kind);
  pool.library = modules_.image_of(process)->find_path_by_bias(fixed.module_bias);
  pool.in_region = (fixed.flags & trace::kInParallel) != 0;
  pool.rebuilds_itself = (fixed.flags & trace::kRebuildsItself) != 0;
  pool.max_threads = fixed.max_threads;
  pool.workers_before = fixed.pool_before;
  pool.workers_lost = fixed.pool_at_fork;
  pool.workers_total = fixed.workers_total;
  model_.pools.push_back(std::move(pool));
  if (const auto worker = find(fixed.pool_thread, RecordType::kThread)) {
    name_stack(
        process, creation_stacks_[worker->index], [id](model::Model & m) -> auto& { return m.pools[id].made_at; });
  }
  become(record, id);
}

void TraceReader::read_fork(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::ForkRecord>();
  const model::ForkId id = model_.forks.size();
  model::Fork fork;
  fork.process = process_of(record);
  fork.ordinal = fixed.ordinal;
  fork.time_ns = record.time_ns;
  fork.prepare_ns = fixed.prepare_ns;
  if (const auto thread = find(fixed.forking_thread, RecordType::kThread)) {
    fork.forking_thread = thread->index;
  } else {
    model::Thread forking;
    forking.process = fork.process;
    forking.tid = record.tid;
    model_.threads.push_back(std::move(forking));
    fork.forking_thread = model_.threads.size() - 1;
  }
  const auto tail = record.tail<trace::ForkRecord>();
  for (std::size_t i = 0; i < fixed.thread_count; ++i) {
    const auto thread = find(element_at<trace::ForkThread>(tail, i).thread, RecordType::kThread);
    if (thread) {
      fork.lost_threads.push_back(thread->index);
    } else {
      ++fork.unknown_threads;
    }
  }
  // Entries of /proc/self/task beyond what the shim knows of; the forking thread is one of them.
  if (fixed.tasks > fixed.thread_count + 1ULL) fork.unknown_threads += fixed.tasks - fixed.thread_count - 1;
  const auto runtimes = tail.subspan(fixed.thread_count * sizeof(trace::ForkThread));
  for (std::size_t i = 0; i < fixed.runtime_count; ++i) {
    const auto pool = find(element_at<std::uint64_t>(runtimes, i), RecordType::kRuntime);
    if (!pool || fork.pools.size() >= kMaxPools) continue;
    if (std::ranges::find(fork.pools, pool->index) == fork.pools.end()) fork.pools.push_back(pool->index);
  }
  const model::ProcessId process = fork.process;
  model_.forks.push_back(std::move(fork));
  name_stack(
      process, fixed.stack, [id](model::Model & m) -> auto& { return m.forks[id].stack; });
  become(record, id);
}

void TraceReader::read_forked(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::ForkedRecord>();
  const auto fork = find(fixed.fork, RecordType::kFork);
  if (!fork) return;
  model_.forks[fork->index].total_ns = fixed.total_ns;
  if (fixed.child > 0) {
    child_of(fork->index, fixed.child, record.time_ns);
  } else {
    model_.forks[fork->index].error = fixed.error;
  }
}

model::LockId TraceReader::lock_of(const trace::HeldRecord& held, model::ProcessId process) {
  const auto bytes = std::min<std::size_t>(held.memory_bytes, sizeof held.memory);
  const auto state = decode_lock(held.kind, std::span(held.memory).first(bytes));
  model::Lock lock;
  lock.address = held.lock;
  lock.kind = to_model(held.kind);
  if (state) {
    lock.type = state->type;
    lock.robust = state->robust;
    lock.priority_inherit = state->priority_inherit;
    lock.process_shared = state->process_shared;
  }
  for (const model::LockId known : locks_[held.lock]) {
    const model::Lock& other = model_.locks[known];
    if (other.kind == lock.kind && other.type == lock.type && other.robust == lock.robust &&
        other.priority_inherit == lock.priority_inherit) {
      return known;
    }
  }
  const model::LockId id = model_.locks.size();
  model_.locks.push_back(std::move(lock));
  locks_[held.lock].push_back(id);
  if (symbolize_) {
    deferred_.add_data(
        modules_.image_of(process), held.lock, [id](model::Model & m) -> auto& { return m.locks[id].name; },
        [id](model::Model & m) -> auto& { return m.locks[id].module; });
  }
  return id;
}

void TraceReader::read_held(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::HeldRecord>();
  const auto fork = find(fixed.fork, RecordType::kFork);
  const auto holder = find(fixed.thread, RecordType::kThread);
  if (!fork || !holder || !is_known(fixed.kind)) return;
  const model::ForkId fork_id = fork->index;
  const model::ProcessId child = child_of(fork_id, record.pid, record.time_ns);
  const auto bytes = std::min<std::size_t>(fixed.memory_bytes, sizeof fixed.memory);
  const auto state = decode_lock(fixed.kind, std::span(fixed.memory).first(bytes));
  // Caught between the lock's release and the record of it: nobody holds it.
  if (state && !state->held) return become(record, kNotHeld, fork_id);
  // The child wrote down a thread that only its parent has.
  model::Fork& about = model_.forks[fork_id];
  if (holder->index != about.forking_thread) model_.threads[holder->index].process = about.process;
  model::Held held;
  held.lock = lock_of(fixed, child);
  held.holder = holder->index;
  held.by_forking_thread = holder->index == about.forking_thread;
  const std::size_t index = about.held.size();
  about.held.push_back(std::move(held));
  name_stack(
      child, fixed.stack,
      [ fork_id, index ](model::Model & m) -> auto& { return m.forks[fork_id].held[index].acquired_at; });
  become(record, index, fork_id);
}

void TraceReader::read_touch(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::TouchRecord>();
  const auto fork = find(fixed.fork, RecordType::kFork);
  if (!fork || !is_known(fixed.kind)) return;
  if (by_pid_.find(record.pid) == by_pid_.end()) child_of(fork->index, record.pid, record.time_ns);
  const std::size_t id = model_.touches.size();
  model::Touch touch;
  touch.fork = fork->index;
  touch.process = process_of(record);
  touch.tid = record.tid;
  touch.time_ns = record.time_ns;
  touch.kind = to_model(fixed.kind);
  touch.action = to_model(fixed.action);
  touch.team = fixed.team;
  touch.clause = fixed.clause;
  touch.timed = (fixed.flags & trace::kTouchTimed) != 0;
  touch.is_team_guess = (fixed.flags & trace::kTouchTeamGuess) != 0;
  touch.by_owner = (fixed.flags & trace::kTouchByOwner) != 0;
  if (fixed.kind == trace::TouchKind::kParallel) {
    const auto pool = find(fixed.runtime, RecordType::kRuntime);
    if (!pool) return;
    touch.pool = pool->index;
  } else {
    const auto held = find(fixed.held, RecordType::kHeld);
    if (!held) return;
    if (held->index == kNotHeld) {
      ++free_locks_touched_;
      return;
    }
    // The fork that lost the lock is the one to blame, wherever the touch was made.
    touch.fork = held->fork;
    touch.held = held->index;
  }
  const model::ProcessId process = touch.process;
  model_.touches.push_back(std::move(touch));
  name_stack(
      process, fixed.stack, [id](model::Model & m) -> auto& { return m.touches[id].stack; });
  become(record, id);
}

void TraceReader::read_touch_end(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::TouchEndRecord>();
  const auto touch = find(fixed.touch, RecordType::kTouch);
  if (!touch) return;
  model_.touches[touch->index].returned = true;
  model_.touches[touch->index].result = fixed.result;
}

void TraceReader::read_cure(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::CureRecord>();
  const auto fork = find(fixed.fork, RecordType::kFork);
  const auto pool = find(fixed.runtime, RecordType::kRuntime);
  if (!fork || !pool || !is_known(fixed.method) || !is_known(fixed.result)) return;
  model_.pools[pool->index].cure = to_model(fixed.method);
  model_.pools[pool->index].cure_result = to_model(fixed.result);
  const bool by_child = record.pid != model_.processes[model_.forks[fork->index].process].pid;
  if (by_child) child_of(fork->index, record.pid, record.time_ns);
  if (fixed.used == 0) return;
  const std::size_t id = model_.touches.size();
  model::Touch touch;
  touch.fork = fork->index;
  touch.process = process_of(record);
  touch.tid = record.tid;
  touch.time_ns = record.time_ns;
  touch.kind = model::TouchKind::kParallel;
  touch.pool = pool->index;
  touch.team = fixed.team;
  touch.clause = fixed.clause;
  touch.cured = true;
  const model::ProcessId process = touch.process;
  model_.touches.push_back(std::move(touch));
  name_stack(
      process, fixed.stack, [id](model::Model & m) -> auto& { return m.touches[id].stack; });
}

void TraceReader::read_note(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::NoteRecord>();
  std::string sentence =
      fmt::format("{}: process {}: {}", file_.name(), record.pid, describe_note(fixed.code, fixed.value));
  if (std::ranges::find(model_.limits, sentence) == model_.limits.end()) model_.limits.push_back(std::move(sentence));
}

// A worker of a lost pool was made by the forking thread and starts inside of the runtime.
void TraceReader::attach_workers() {
  for (model::ForkId id = first_fork_; id < model_.forks.size(); ++id) {
    const model::Fork& fork = model_.forks[id];
    const std::int32_t forking_tid = model_.threads[fork.forking_thread].tid;
    for (const model::PoolId pool_id : fork.pools) {
      model::Pool& pool = model_.pools[pool_id];
      for (const model::ThreadId thread : fork.lost_threads) {
        const model::Thread& candidate = model_.threads[thread];
        const bool is_worker =
            candidate.creator_tid == forking_tid && !pool.library.empty() && candidate.start_library == pool.library;
        if (is_worker && pool.workers.size() < pool.workers_lost) pool.workers.push_back(thread);
      }
    }
  }
}

}  // namespace forksight::collect
