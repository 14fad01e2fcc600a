// What the readers of one trace share: the trace file, the model that they fill, and two tables. One table says what
// each record became in the model. The other says to which process each pid belongs.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "collect/deferred_symbols.hpp"
#include "collect/module_map.hpp"
#include "collect/process_table.hpp"
#include "collect/trace_budget.hpp"
#include "collect/trace_file.hpp"
#include "model/model.hpp"

namespace forksight::collect {

// What a record became in the model. `index` is an index in a list. The type of the record decides which list this is:
//   kStack: the records of the file
//   kHeld, kInFlight: a list of their fork
//   kShareUse: a list of its share
//   kLibcCall, kCudaFunction, kHandlers, kHandlerRun: a list of their reader
//   all other types: a list of the model
struct Target {
  trace::RecordType type{};
  std::size_t index = 0;
  model::ForkId fork = 0;  // kHeld, kInFlight: their fork; kShareUse: the index of its share
};

class TraceContext {
 public:
  // `file` and `budget` must outlive this object. If `symbolize` is false, no name is looked up. `budget` may be null.
  TraceContext(const TraceFile& file, model::Model& model, ProcessTable& processes, bool symbolize,
               TraceBudget* budget);

  const TraceFile& file() const { return file_; }
  model::Model& model() { return model_; }
  ModuleMap& modules() { return modules_; }
  DeferredSymbols& deferred() { return deferred_; }
  bool symbolizes() const { return symbolize_; }
  // Called before each record is read, and before each record that is read a second time. Returns false if this record
  // and the following ones must be left out, because the trace has taken too much memory or time.
  bool may_read(const TraceRecord& record) { return budget_ == nullptr || budget_->allows(record); }
  TraceBudget* budget() const { return budget_; }
  model::ForkId first_fork() const { return first_fork_; }  // the first fork of this file
  model::ThreadId first_thread() const { return first_thread_; }

  // Returns what the record at `reference` became in the model. Returns nullopt if `reference` is 0, which means that
  // there is no such record. Also returns nullopt if bind() was not called for a record of this type at that offset.
  // bad_references() counts how often the second case happened.
  std::optional<Target> find(std::uint64_t reference, trace::RecordType type);
  bool is_of_type(std::uint64_t reference, trace::RecordType type) const;
  std::uint64_t bad_references() const { return bad_references_; }
  void bind(const TraceRecord& record, std::size_t index, model::ForkId fork = 0);
  void name_stack(model::ProcessId process, std::uint64_t reference, DeferredSymbols::Place<model::Stack> place);

  // Enters the process that made the file into the model.
  void enter_creator();
  model::ProcessId process_of(const TraceRecord& record);
  // Returns the latest process with this pid, if one is known.
  std::optional<model::ProcessId> find_process(std::int32_t pid) const;
  // Returns the child of the fork. If the child is not known yet, enters the process with this pid as the child.
  model::ProcessId child_of(model::ForkId fork, std::int32_t pid, std::uint64_t time_ns);
  // True if the fork that made the process is known, or if the process itself made the file.
  bool has_fork(model::ProcessId process) const;
  void mark_missing_records();

 private:
  const TraceFile& file_;
  model::Model& model_;
  ProcessTable& processes_;
  bool symbolize_;
  TraceBudget* budget_;
  model::ForkId first_fork_;
  model::ThreadId first_thread_;
  model::ProcessId creator_ = 0;
  ModuleMap modules_;
  DeferredSymbols deferred_;
  std::unordered_map<std::uint64_t, Target> targets_;
  std::unordered_map<std::int32_t, model::ProcessId> by_pid_;
  std::unordered_map<model::ProcessId, bool> has_fork_;
  std::uint64_t bad_references_ = 0;
};

}  // namespace forksight::collect
