#include "collect/read_foresight.hpp"

#include <algorithm>

#include "collect/trace_words.hpp"
#include "forksight/trace/foresight.hpp"

namespace forksight::collect {

using trace::RecordType;

namespace {

constexpr std::size_t kMaxGates = 64;  // the shim's array of held locks has fewer entries

bool is_followed(trace::LockKind kind) {
  return kind == trace::LockKind::kMutex || kind == trace::LockKind::kRwlockRead ||
         kind == trace::LockKind::kRwlockWrite;
}

model::OrderedLock ordered(std::uint64_t number, trace::LockKind kind) {
  return {number, kind == trace::LockKind::kRwlockRead};
}

// Makes a lock of which only the address and the kind are known.
trace::HeldRecord lock_at(std::uint64_t address, trace::LockKind kind) {
  trace::HeldRecord held{};
  held.lock = address;
  held.kind = kind;
  return held;
}

std::vector<model::TimeSlice> slices_of(const trace::RacyTouchRecord& touch) {
  std::vector<model::TimeSlice> slices;
  const auto window = static_cast<double>(touch.window_ticks);
  const bool is_sane = touch.slice_ticks != 0 && touch.slice_ticks < std::uint64_t{1} << 58U;
  for (std::uint64_t i = 0; is_sane && i < trace::kTimeSlices; ++i) {
    const std::uint64_t begin = i * touch.slice_ticks;
    if (begin >= touch.window_ticks) break;
    const std::uint64_t time = std::min(touch.slice_ticks, touch.window_ticks - begin);
    slices.push_back({static_cast<double>(touch.slices[i]) / window, static_cast<double>(time) / window});
  }
  return slices;
}

}  // namespace

void ForesightReader::read_thread_life(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::ThreadLifeRecord>();
  model::ThreadLife life;
  life.process = trace_.process_of(record);
  if (fixed.creator != 0) {
    if (const auto creator = trace_.find(fixed.creator, RecordType::kThreadLife)) life.creator = creator->index;
  }
  life.born = fixed.born;
  life.joined = fixed.joined;
  life.is_followed = (fixed.flags & trace::kLifeUnfollowed) == 0;
  if (fixed.joined != 0 && fixed.joiner != 0) joiners_.emplace_back(model_.lives.size(), fixed.joiner);
  trace_.bind(record, model_.lives.size());
  model_.lives.push_back(life);
}

// Only remembers the record. attach_lock_orders() reads the record after the whole trace, because later records may
// name the libraries that contain the locks.
void ForesightReader::read_lock_order(const TraceRecord& record) {
  lock_orders_.emplace_back(&record, trace_.process_of(record));
}

void ForesightReader::attach_lock_orders() {
  // The record of a thread that joins another one may come after the record of the joined thread.
  for (const auto& [life, reference] : joiners_) {
    if (const auto joiner = trace_.find(reference, RecordType::kThreadLife)) model_.lives[life].joiner = joiner->index;
  }
  for (const auto& [record, process] : lock_orders_) {
    if (!trace_.may_read(*record)) return;
    attach_lock_order(*record, process);
  }
}

void ForesightReader::attach_lock_order(const TraceRecord& record, model::ProcessId process) {
  const auto fixed = record.fixed<trace::LockOrderRecord>();
  const auto held_kind = static_cast<trace::LockKind>(fixed.held_kind);
  const auto taken_kind = static_cast<trace::LockKind>(fixed.taken_kind);
  const auto life = trace_.find(fixed.life, RecordType::kThreadLife);
  const auto thread = trace_.find(fixed.thread, RecordType::kThread);
  const bool holds = fixed.held_number != 0;
  if (!life || !thread || (holds && !is_followed(held_kind)) || !is_followed(taken_kind)) return;
  if (!holds && (taken_kind != trace::LockKind::kRwlockWrite || (fixed.flags & trace::kOrderQueues) == 0)) return;
  if (model_.lives[life->index].process != process || fixed.held_number == fixed.taken_number) return;
  const std::size_t id = model_.lock_orders.size();
  model::LockOrder order;
  order.life = life->index;
  order.thread = thread->index;
  if (holds) {
    order.held_as = ordered(fixed.held_number, held_kind);
    order.held = locks_.lock_of(lock_at(fixed.held, held_kind), process);
  }
  order.taken_as = ordered(fixed.taken_number, taken_kind);
  order.taken = locks_.lock_of(lock_at(fixed.taken, taken_kind), process);
  const auto tail = record.tail<trace::LockOrderRecord>();
  const auto gates = std::min<std::size_t>(fixed.gates, kMaxGates);
  for (std::size_t i = 0; i < gates; ++i) {
    const auto gate = TraceRecord::element_at<trace::OrderGate>(tail, i);
    // An order has a first lock, which the thread held, and a second lock, which the thread took then. A gate is a
    // third lock that the thread also held when it took the second one. Two threads with the same gate cannot take
    // their second locks at the same time, unless both hold the gate to read. `inner` marks a lock that the thread took
    // after the first lock, and for which no orders are recorded. An inner lock is no gate: one thread may hold it and
    // wait for the first lock of another thread, while that thread waits for the inner lock. A lock that was taken
    // after the first one is a gate if orders are recorded for it, because these orders show the same deadlock.
    if (gate.number != 0 && gate.inner == 0) order.gates.push_back({gate.number, gate.shared != 0});
  }
  const auto used = std::min<std::size_t>(fixed.used, trace::kOrderMoments);
  order.moments.assign(fixed.moments, fixed.moments + used);
  order.times = fixed.times;
  order.queues = (fixed.flags & trace::kOrderQueues) != 0;
  model_.lock_orders.push_back(std::move(order));
  trace_.name_stack(
      process, fixed.held_stack, [id](model::Model & m) -> auto& { return m.lock_orders[id].held_at; });
  trace_.name_stack(
      process, fixed.taken_stack, [id](model::Model & m) -> auto& { return m.lock_orders[id].taken_at; });
}

void ForesightReader::read_racy_touch(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::RacyTouchRecord>();
  const auto kind = static_cast<trace::LockKind>(fixed.kind);
  const auto fork = trace_.find(fixed.fork, RecordType::kFork);
  const auto holder = trace_.find(fixed.holder, RecordType::kThread);
  if (!fork || !holder || !is_followed(kind) || fixed.held_ticks == 0 || fixed.window_ticks == 0) return;
  const std::size_t id = model_.racy_touches.size();
  model::RacyTouch touch;
  touch.fork = fork->index;
  if (!trace_.find_process(record.pid)) trace_.child_of(fork->index, record.pid, record.time_ns);
  touch.process = trace_.process_of(record);
  touch.tid = record.tid;
  touch.lock = locks_.lock_of(lock_at(fixed.lock, kind), touch.process);
  touch.holder = holder->index;
  touch.share = std::min(1.0, static_cast<double>(fixed.held_ticks) / static_cast<double>(fixed.window_ticks));
  touch.slices = slices_of(fixed);
  touch.window_ns = fixed.window_ns;
  touch.times = fixed.times;
  touch.threads = fixed.threads;
  const model::ProcessId process = touch.process;
  model_.racy_touches.push_back(std::move(touch));
  trace_.name_stack(
      process, fixed.stack, [id](model::Model & m) -> auto& { return m.racy_touches[id].stack; });
  trace_.name_stack(
      process, fixed.held_stack, [id](model::Model & m) -> auto& { return m.racy_touches[id].held_at; });
}

}  // namespace forksight::collect
