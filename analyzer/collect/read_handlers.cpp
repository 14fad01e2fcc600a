#include "collect/read_handlers.hpp"

#include <algorithm>

#include "collect/trace_words.hpp"
#include "forksight/trace/handlers.hpp"

namespace forksight::collect {

using trace::RecordType;

namespace {

constexpr std::size_t kMaxHandlers = 1024;  // in one list of a damaged trace; the shim lists at most kMaxListedHandlers
constexpr std::size_t kMaxWaits = 16;       // in one handler: a wait may contain further waits
constexpr std::size_t kMaxHolds = 64;       // by one thread; the shim keeps as many
constexpr std::uint32_t kPlaceMask = (1U << 24U) - 1;

}  // namespace

void HandlerReader::read_handlers(const TraceRecord& record) {
  const auto count = std::min<std::size_t>(record.fixed<trace::HandlersRecord>().count, kMaxHandlers);
  const auto tail = record.tail<trace::HandlersRecord>();
  const ImagePtr& image = trace_.modules().image_of(trace_.process_of(record));
  handler_lists_.emplace_back(model_.handlers.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto entry = TraceRecord::element_at<trace::HandlerEntry>(tail, i);
    const std::uint64_t addresses[] = {entry.prepare, entry.parent, entry.child};
    const model::HandlerId id = model_.handlers.size();
    model::AtforkHandlers& handlers = model_.handlers.emplace_back();
    for (std::size_t phase = 0; phase < std::size(addresses); ++phase) {
      handlers.has[phase] = addresses[phase] != 0;
      if (!handlers.has[phase]) continue;
      if (handlers.library.empty()) handlers.library = image->find_path(addresses[phase]);
      if (!trace_.symbolizes()) continue;
      trace_.deferred().add_code(
          image, addresses[phase],
          [ id, phase ](model::Model & m) -> auto& { return m.handlers[id].functions[phase]; });
    }
  }
  trace_.bind(record, handler_lists_.size() - 1);
}

void HandlerReader::read_handler_run(const TraceRecord& record) {
  handler_runs_.emplace_back(&record, trace_.process_of(record));
  trace_.bind(record, handler_runs_.size() - 1);
}

void HandlerReader::read_handler_wait(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::HandlerWaitRecord>();
  if (fixed.done != 0 || !is_known(fixed.kind) || !trace_.find(fixed.run, RecordType::kHandlerRun)) return;
  auto& waits = handler_waits_[fixed.run];
  if (waits.size() < kMaxWaits) waits.push_back(&record);
}

void HandlerReader::read_handler_held(const TraceRecord& record) {
  auto& holds = handler_holds_[record.fixed<trace::HandlerHeldRecord>().wait];
  if (holds.size() < kMaxHolds) holds.push_back(&record);
}

void HandlerReader::attach_handler_runs() {
  for (const auto& [record, process] : handler_runs_) {
    if (!trace_.may_read(*record)) return;
    attach_run(*record, process);
  }
}

void HandlerReader::attach_times(const TraceRecord& record, model::ForkId fork_id, model::ProcessId process) {
  const auto fixed = record.fixed<trace::HandlerRunRecord>();
  const auto list = trace_.find(fixed.handlers, RecordType::kHandlers);
  if (!list) return;
  const auto [first, size] = handler_lists_[list->index];
  const std::size_t count = std::min<std::size_t>(fixed.count, size);
  model::Fork& fork = model_.forks[fork_id];
  for (std::size_t i = fork.handlers.size(); i < count; ++i) fork.handlers.push_back({first + i, {}});
  const bool in_parent = process == fork.process;
  for (std::size_t i = 0; i < count; ++i) {
    const auto times = TraceRecord::element_at<trace::HandlerTimes>(record.tail<trace::HandlerRunRecord>(), i);
    auto& ns = fork.handlers[i].ns;
    if (in_parent && times.prepare_ns != 0) ns[0] = times.prepare_ns;
    if (in_parent && times.parent_ns != 0) ns[1] = times.parent_ns;
    if (!in_parent && times.child_ns != 0) ns[2] = times.child_ns;
  }
}

void HandlerReader::attach_run(const TraceRecord& record, model::ProcessId process) {
  const auto fixed = record.fixed<trace::HandlerRunRecord>();
  const auto fork = trace_.find(fixed.fork, RecordType::kFork);
  if (fork) {
    // If the pid is not the parent's, the child of the fork wrote the record. This may be the only record of that
    // child.
    if (record.pid != model_.processes[model_.forks[fork->index].process].pid)
      process = trace_.child_of(fork->index, record.pid, record.time_ns);
    attach_times(record, fork->index, process);
  }
  const auto phase = static_cast<trace::HandlerPhase>(fixed.running >> 24U);
  const std::uint32_t place = fixed.running & kPlaceMask;
  if (fixed.running == 0 || !is_known(phase) || place == 0) return;
  const auto list = trace_.find(fixed.handlers, RecordType::kHandlers);
  if (!list || place > handler_lists_[list->index].second) return;
  const auto [first, size] = handler_lists_[list->index];
  model::HandlerRun run;
  run.process = process;
  run.tid = record.tid;
  if (fork) run.fork = fork->index;
  if (const auto thread = trace_.find(fixed.thread, RecordType::kThread)) run.thread = thread->index;
  run.phase = to_model(phase);
  run.handlers = first + place - 1;
  run.since_ns = fixed.since_ns;
  // Prepare handlers are called in reverse order of their registration.
  const auto which = static_cast<std::size_t>(run.phase);
  for (std::size_t i = 0; i < size; ++i) {
    if (!model_.handlers[first + i].has[which]) continue;
    ++run.of;
    const bool is_before = run.phase == model::HandlerPhase::kPrepare ? i + 1 > place : i + 1 < place;
    run.place += is_before ? 1U : 0U;
  }
  ++run.place;
  if (const auto waits = handler_waits_.find(record.offset); waits != handler_waits_.end()) {
    for (const TraceRecord* const wait : waits->second) attach_wait(*wait, run);
    const auto holds = handler_holds_.find(waits->second.back()->offset);
    const bool has_holds = run.phase == model::HandlerPhase::kPrepare && holds != handler_holds_.end();
    for (std::size_t i = 0; has_holds && i < holds->second.size(); ++i) attach_hold(*holds->second[i], run);
  }
  const std::size_t id = model_.handler_runs.size();
  model_.handler_runs.push_back(std::move(run));
  trace_.name_stack(
      process, fixed.stack, [id](model::Model & m) -> auto& { return m.handler_runs[id].fork_stack; });
}

// Adds a wait to `run`, which is not in model_.handler_runs yet, but will be its next element.
void HandlerReader::attach_wait(const TraceRecord& record, model::HandlerRun& run) {
  const auto fixed = record.fixed<trace::HandlerWaitRecord>();
  const std::size_t id = model_.handler_runs.size();
  const std::size_t at = run.waits.size();
  model::HandlerWait& wait = run.waits.emplace_back();
  wait.kind = to_model(fixed.kind);
  wait.object = fixed.object;
  wait.timed = fixed.timed != 0;
  if (const auto owner = trace_.find(fixed.owner, RecordType::kThread)) wait.owner = owner->index;
  trace_.name_stack(
      run.process, fixed.owner_stack,
      [ id, at ](model::Model & m) -> auto& { return m.handler_runs[id].waits[at].owner_stack; });
  trace_.name_stack(
      run.process, fixed.stack, [ id, at ](model::Model & m) -> auto& { return m.handler_runs[id].waits[at].stack; });
  if (!trace_.symbolizes() || wait.kind == model::HandlerWaitKind::kJoin) return;
  trace_.deferred().add_data(
      trace_.modules().image_of(run.process), fixed.object,
      [ id, at ](model::Model & m) -> auto& { return m.handler_runs[id].waits[at].object_name; },
      [ id, at ](model::Model & m) -> auto& { return m.handler_runs[id].waits[at].object_module; });
}

// Adds to `run` a lock that its thread holds. Called after the waits of the run were added.
void HandlerReader::attach_hold(const TraceRecord& record, model::HandlerRun& run) {
  const auto fixed = record.fixed<trace::HandlerHeldRecord>();
  const std::size_t id = model_.handler_runs.size();
  const std::size_t at = run.holds.size();
  run.holds.emplace_back().object = fixed.lock;
  trace_.name_stack(
      run.process, fixed.stack,
      [ id, at ](model::Model & m) -> auto& { return m.handler_runs[id].holds[at].taken_at; });
  if (!trace_.symbolizes()) return;
  trace_.deferred().add_data(
      trace_.modules().image_of(run.process), fixed.lock,
      [ id, at ](model::Model & m) -> auto& { return m.handler_runs[id].holds[at].object_name; },
      [ id, at ](model::Model & m) -> auto& { return m.handler_runs[id].holds[at].object_module; });
}

}  // namespace forksight::collect
