#include "collect/read_locks.hpp"

#include <algorithm>
#include <string>

#include "collect/trace_words.hpp"
#include "libc/lock_layout.hpp"

namespace forksight::collect {

using trace::RecordType;

namespace {

constexpr std::size_t kNotHeld = static_cast<std::size_t>(-1);
constexpr std::size_t kMostLabelBytes = 128;  // the most that the shim writes

}  // namespace

void LockReader::read_held(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::HeldRecord>();
  const auto fork = trace_.find(fixed.fork, RecordType::kFork);
  const auto holder = trace_.find(fixed.thread, RecordType::kThread);
  if (!fork || !holder || !is_known(fixed.kind)) return;
  const model::ForkId fork_id = fork->index;
  const model::ProcessId child = trace_.child_of(fork_id, record.pid, record.time_ns);
  const auto bytes = std::min<std::size_t>(fixed.memory_bytes, sizeof fixed.memory);
  const auto state =
      libc::decode_lock(to_model(fixed.kind), std::span(fixed.memory).first(bytes), trace_.file().info().libc);
  // No thread holds the lock: the fork came after the thread released the lock, but before the shim noted the release.
  if (state && !state->held) return trace_.bind(record, kNotHeld, fork_id);
  // The child wrote this record, but only the child's parent has the thread.
  model::Fork& about = model_.forks[fork_id];
  if (holder->index != about.forking_thread) model_.threads[holder->index].process = about.process;
  model::Held held;
  held.lock = locks_.lock_of(fixed, child);
  held.holder = holder->index;
  held.by_forking_thread = holder->index == about.forking_thread;
  held.waiters = state ? state->waiters : 0;
  const std::size_t index = about.held.size();
  about.held.push_back(std::move(held));
  trace_.name_stack(
      child, fixed.stack,
      [ fork_id, index ](model::Model & m) -> auto& { return m.forks[fork_id].held[index].acquired_at; });
  trace_.bind(record, index, fork_id);
}

void LockReader::read_touch(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::TouchRecord>();
  const auto fork = trace_.find(fixed.fork, RecordType::kFork);
  if (!fork || !is_known(fixed.kind)) return;
  if (!trace_.find_process(record.pid)) trace_.child_of(fork->index, record.pid, record.time_ns);
  const std::size_t id = model_.touches.size();
  model::Touch touch;
  touch.fork = fork->index;
  touch.process = trace_.process_of(record);
  touch.tid = record.tid;
  touch.time_ns = record.time_ns;
  touch.kind = to_model(fixed.kind);
  touch.action = to_model(fixed.action);
  touch.team = fixed.team;
  touch.clause = fixed.clause;
  touch.timed = (fixed.flags & trace::kTouchTimed) != 0;
  touch.is_team_guess = (fixed.flags & trace::kTouchTeamGuess) != 0;
  touch.by_owner = (fixed.flags & trace::kTouchByOwner) != 0;
  touch.is_stolen = (fixed.flags & trace::kTouchStolen) != 0;
  touch.operation = to_model(static_cast<trace::SyncOperation>(fixed.operation));
  if (fixed.kind == trace::TouchKind::kFutexWait) return read_futex_wait(record, fixed, std::move(touch));
  if (fixed.kind == trace::TouchKind::kParallel) {
    const auto pool = trace_.find(fixed.runtime, RecordType::kRuntime);
    if (!pool) return;
    touch.pool = pool->index;
  } else if (fixed.kind == trace::TouchKind::kExit) {
    // An exit touches no object: the touch has only its fork.
  } else if (fixed.kind == trace::TouchKind::kTimerWait) {
    touch.object = fixed.object;
  } else if (fixed.kind == trace::TouchKind::kLibcCall) {
    const auto in_flight = trace_.find(fixed.held, RecordType::kInFlight);
    const auto call = trace_.find(fixed.object, RecordType::kLibcCall);
    if (!in_flight || !call) return;
    touch.fork = in_flight->fork;
    touch.in_flight = in_flight->index;
    touch.call = calls_.call(call->index);
    touch.cured = (fixed.flags & trace::kTouchCured) != 0;
  } else if (fixed.kind == trace::TouchKind::kCudaCall || fixed.kind == trace::TouchKind::kMpiCall) {
    const auto function = trace_.find(fixed.runtime, RecordType::kCudaFunction);
    if (!function) return;
    touch.function = cuda_.function(function->index);
  } else {
    const auto held = trace_.find(fixed.held, RecordType::kHeld);
    if (!held) return;
    if (held->index == kNotHeld) {
      ++free_locks_touched_;
      return;
    }
    // The touch belongs to the fork at which the lock was held, even if a later descendant made the touch.
    touch.fork = held->fork;
    touch.held = held->index;
  }
  const model::ProcessId process = touch.process;
  model_.touches.push_back(std::move(touch));
  trace_.name_stack(
      process, fixed.stack, [id](model::Model & m) -> auto& { return m.touches[id].stack; });
  trace_.bind(record, id);
}

// A record of this kind names no lock and no pool. Only the address of the futex word is known.
void LockReader::read_futex_wait(const TraceRecord& record, const trace::TouchRecord& fixed, model::Touch touch) {
  const std::size_t id = model_.touches.size();
  const model::ProcessId process = touch.process;
  touch.object = fixed.object;
  touch.value = fixed.team;
  touch.team = 0;
  touch.clause = 0;
  touch.has_handlers = (fixed.flags & trace::kTouchHandlers) != 0;
  model_.touches.push_back(std::move(touch));
  trace_.name_stack(
      process, fixed.stack, [id](model::Model & m) -> auto& { return m.touches[id].stack; });
  if (trace_.symbolizes()) {
    trace_.deferred().add_data(
        trace_.modules().image_of(process),
        fixed.object, [id](model::Model & m) -> auto& { return m.touches[id].object_name; },
        [id](model::Model & m) -> auto& { return m.touches[id].object_module; });
  }
  trace_.bind(record, id);
}

void LockReader::read_lock_name(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::LockNameRecord>();
  const auto touch = trace_.find(fixed.touch, RecordType::kTouch);
  if (!touch) return;
  const model::Touch& about = model_.touches[touch->index];
  if (!about.held) return;
  model::Lock& lock = model_.locks[model_.forks[about.fork].held[*about.held].lock];
  const auto text = record.tail<trace::LockNameRecord>().first(fixed.bytes);
  if (lock.kind == model::LockKind::kCustom)
    lock.label.assign(reinterpret_cast<const char*>(text.data()), std::min(text.size(), kMostLabelBytes));
}

void LockReader::read_touch_end(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::TouchEndRecord>();
  const auto touch = trace_.find(fixed.touch, RecordType::kTouch);
  if (!touch) return;
  model_.touches[touch->index].returned = true;
  model_.touches[touch->index].result = fixed.result;
}

}  // namespace forksight::collect
