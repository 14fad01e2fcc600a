// From the records of one trace file to the model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "collect/deferred_symbols.hpp"
#include "collect/module_map.hpp"
#include "collect/process_table.hpp"
#include "collect/trace_file.hpp"
#include "model/model.hpp"

namespace forksight::collect {

class TraceReader {
 public:
  // `file` must outlive the reader. With `symbolize` unset no name is looked up.
  TraceReader(const TraceFile& file, model::Model& model, ProcessTable& processes, bool symbolize);
  void read();

 private:
  // What a record became: its index in the model (kStack: in the file; kHeld, kInFlight: in its fork's list; kLibcCall:
  // in libc_calls_).
  struct Target {
    trace::RecordType type{};
    std::size_t index = 0;
    model::ForkId fork = 0;  // kHeld, kInFlight; of a kShareUse, which is in the list of its share, that share
  };

  void read_record(const TraceRecord& record);
#define FORKSIGHT_RECORD(id, number, name, type, words) void read_##name(const TraceRecord& record);
#include "forksight/trace/records.def"
  void read_futex_wait(const TraceRecord& record, const trace::TouchRecord& fixed, model::Touch touch);
  void tell_notes();
  void attach_lock_orders();
  void attach_lock_order(const TraceRecord& record, model::ProcessId process);
  void attach_handler_runs();
  void attach_run(const TraceRecord& record, model::ProcessId process);
  void attach_times(const TraceRecord& record, model::ForkId fork, model::ProcessId process);
  void attach_wait(const TraceRecord& record, model::HandlerRun& run);
  void attach_hold(const TraceRecord& record, model::HandlerRun& run);
  void sort_threads_by_owner();
  void attach_workers();
  // Python's frames into the native stacks, once these are unwound.
  void join_python();
  void name_lost_waits(model::ForkId id);

  // References: 0 is none; one that is not committed, of another type, or further on, is counted and is none.
  std::optional<Target> find(std::uint64_t reference, trace::RecordType type);
  void become(const TraceRecord& record, std::size_t index, model::ForkId fork = 0);
  void name_stack(model::ProcessId process, std::uint64_t reference, DeferredSymbols::Place<model::Stack> place);

  model::ProcessId process_of(const TraceRecord& record);
  // The child of a fork, made known by its pid.
  model::ProcessId child_of(model::ForkId fork, std::int32_t pid, std::uint64_t time_ns);
  model::LockId lock_of(const trace::HeldRecord& held, model::ProcessId process);

  const TraceFile& file_;
  model::Model& model_;
  ProcessTable& processes_;
  bool symbolize_;
  model::ForkId first_fork_;  // of this file
  model::ThreadId first_thread_;
  model::ProcessId creator_ = 0;
  ModuleMap modules_;
  DeferredSymbols deferred_;
  std::unordered_map<std::uint64_t, Target> targets_;
  std::unordered_map<std::int32_t, model::ProcessId> by_pid_;  // the latest of that pid
  std::unordered_map<model::ProcessId, bool> has_fork_;        // its birth is known
  std::unordered_map<std::uint64_t, std::vector<model::LockId>> locks_;
  std::unordered_map<model::ThreadId, std::uint64_t> creation_stacks_;
  std::unordered_map<std::size_t, model::PythonId> python_of_touch_;              // by index of the touch
  std::map<std::pair<std::size_t, std::size_t>, model::PythonId> python_of_use_;  // by indices of share and use
  std::vector<model::LibcCall> libc_calls_;
  std::vector<std::string> cuda_functions_;  // what a kCudaFunction became an index of
  // Lists of handlers, by the index that a kHandlers record became: where its entries begin, and how many they are.
  std::vector<std::pair<model::HandlerId, std::size_t>> handler_lists_;
  // Records that change in place name what comes after them: they are read last.
  std::vector<std::pair<const TraceRecord*, model::ProcessId>> handler_runs_;
  std::unordered_map<std::uint64_t, std::vector<const TraceRecord*>> handler_waits_;  // open ones, by their run
  std::unordered_map<std::uint64_t, std::vector<const TraceRecord*>> handler_holds_;  // by their wait
  std::vector<std::pair<const TraceRecord*, model::ProcessId>> lock_orders_;
  std::vector<std::pair<model::LifeId, std::uint64_t>> joiners_;  // refs
  struct Noted {
    std::uint64_t most = 0;
    std::set<std::int32_t> pids;
  };
  std::map<trace::NoteCode, Noted> notes_;
  std::uint64_t notes_left_out_ = 0;
  std::uint64_t bad_references_ = 0;
  std::uint64_t modules_left_out_ = 0;
  std::uint64_t free_locks_touched_ = 0;
};

}  // namespace forksight::collect
