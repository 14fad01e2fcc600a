#include "collect/trace_context.hpp"

#include <algorithm>
#include <utility>

namespace forksight::collect {

TraceContext::TraceContext(const TraceFile& file, model::Model& model, ProcessTable& processes, bool symbolize,
                           TraceBudget* budget)
    : file_(file),
      model_(model),
      processes_(processes),
      symbolize_(symbolize),
      budget_(budget),
      first_fork_(model.forks.size()),
      first_thread_(model.threads.size()) {}

std::optional<Target> TraceContext::find(std::uint64_t reference, trace::RecordType type) {
  if (reference == 0) return std::nullopt;
  const auto at = targets_.find(reference);
  if (at != targets_.end() && at->second.type == type) return at->second;
  ++bad_references_;
  return std::nullopt;
}

void TraceContext::bind(const TraceRecord& record, std::size_t index, model::ForkId fork) {
  targets_[record.offset] = {record.type, index, fork};
}

void TraceContext::name_stack(model::ProcessId process, std::uint64_t reference,
                              DeferredSymbols::Place<model::Stack> place) {
  const auto stack = find(reference, trace::RecordType::kStack);
  if (!stack || !symbolize_) return;
  deferred_.add_stack(modules_.image_of(process), file_.records()[stack->index], std::move(place));
}

model::ProcessId TraceContext::process_of(const TraceRecord& record) {
  const auto known = by_pid_.find(record.pid);
  if (known != by_pid_.end()) return known->second;
  const model::ProcessId process = processes_.enter_child(file_.info(), record.pid, 0, record.time_ns);
  by_pid_[record.pid] = process;
  modules_.inherit(process, creator_);
  return process;
}

model::ProcessId TraceContext::child_of(model::ForkId fork, std::int32_t pid, std::uint64_t time_ns) {
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
  if (!model_.processes[child].has_execed) {
    model_.processes[child].python_signal = model_.processes[about.process].python_signal;
    model_.processes[child].shim_start = model_.processes[about.process].shim_start;
  }
  has_fork_[child] = true;
  about.child = child;
  return child;
}

void TraceContext::enter_creator() {
  creator_ = processes_.enter_creator(file_.info());
  by_pid_[file_.info().pid] = creator_;
  has_fork_[creator_] = true;
}

bool TraceContext::is_of_type(std::uint64_t reference, trace::RecordType type) const {
  const auto at = targets_.find(reference);
  return at != targets_.end() && at->second.type == type;
}

std::optional<model::ProcessId> TraceContext::find_process(std::int32_t pid) const {
  const auto known = by_pid_.find(pid);
  return known == by_pid_.end() ? std::nullopt : std::optional(known->second);
}

bool TraceContext::has_fork(model::ProcessId process) const {
  const auto known = has_fork_.find(process);
  return known != has_fork_.end() && known->second;
}

void TraceContext::mark_missing_records() {
  const bool is_cut = budget_ != nullptr && budget_->used_up() != nullptr;
  for (const auto& [pid, process] : by_pid_) {
    if (is_cut || file_.has_gaps()) model_.processes[process].has_gaps = true;
  }
}

}  // namespace forksight::collect
