#include "collect/trace_reader.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "collect/read_copied_state.hpp"
#include "collect/read_output.hpp"
#include "collect/read_shares.hpp"
#include "forksight/abi/mutex.hpp"

namespace forksight::collect {

using trace::RecordType;

namespace {

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void TraceReader::read() {
  if (!trace_.file().records().empty()) {
    trace_.enter_creator();
    for (const TraceRecord& record : trace_.file().records()) {
      if (!trace_.may_read(record)) break;
      read_record(record);
      ++records_read_;
    }
    pools_.attach_workers();
    handlers_.attach_handler_runs();
    foresight_.attach_lock_orders();
    if (trace_.budget() != nullptr) trace_.budget()->stop_clock();
    if (trace_.symbolizes()) has_all_names_ = trace_.deferred().resolve(trace_.model(), trace_.budget());
    threads_.sort_threads_by_owner();
    python_.join_python();
    trace_.mark_missing_records();
  }
  notes_.tell_notes();
  tell_limits();
}

void TraceReader::tell_limits() {
  const TraceFile& file = trace_.file();
  std::vector<std::string>& limits = trace_.model().limits;
  limits.insert(limits.end(), file.limits().begin(), file.limits().end());
  const auto say = [&](const std::string& what) { limits.push_back(file.name() + ": " + what); };
  if (trace_.budget() != nullptr && trace_.budget()->used_up() != nullptr)
    say(fmt::format("its records would take too much {}; only the first {} of {} records were read",
                    trace_.budget()->used_up(), records_read_, file.records().size()));
  if (!has_all_names_) say("its names and stacks would take too much memory; some of them are missing");
  const abi::Version libc = file.info().libc.version;
  if (!file.records().empty() && !abi::Mutex::kVersions.have(libc)) {
    say(libc.is_known() ? fmt::format("glibc {}.{} is not known to this build: forksight says nothing about locks",
                                      libc.major, libc.minor)
                        : "it is not known which libc its processes ran on: forksight says nothing about locks");
  }
  if (trace_.bad_references() > 0)
    say(fmt::format("{} references name no earlier record of the right type and were ignored",
                    trace_.bad_references()));
  if (has_module_without_path_)
    say("the path of a program or library was not recorded, so its functions have no names");
  if (modules_left_out_ > 0)
    say(fmt::format("{} modules were left out, because the trace lists more of them than a process can have",
                    modules_left_out_));
  if (notes_.left_out() > 0) say(fmt::format("{} more notes about its processes were left out", notes_.left_out()));
  if (locks_.free_locks_touched() > 0)
    say(fmt::format("{} operations on locks that nobody held at the fork were ignored", locks_.free_locks_touched()));
}

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"  // each type of record needs a case
void TraceReader::read_record(const TraceRecord& record) {
  switch (record.type) {
    case RecordType::kModule: return read_module(record);
    case RecordType::kStack:
      return trace_.bind(record, static_cast<std::size_t>(&record - trace_.file().records().data()));
    case RecordType::kThread: return threads_.read_thread(record);
    case RecordType::kRuntime: return pools_.read_runtime(record);
    case RecordType::kHandlers: return handlers_.read_handlers(record);
    case RecordType::kFork: return forks_.read_fork(record);
    case RecordType::kForked: return forks_.read_forked(record);
    case RecordType::kHeld: return locks_.read_held(record);
    case RecordType::kTouch: return locks_.read_touch(record);
    case RecordType::kTouchEnd: return locks_.read_touch_end(record);
    case RecordType::kCure: return pools_.read_cure(record);
    case RecordType::kNote: return notes_.read_note(record);
    case RecordType::kLockName: return locks_.read_lock_name(record);
    case RecordType::kLibcCall: return calls_.read_libc_call(record);
    case RecordType::kInFlight: return calls_.read_in_flight(record);
    case RecordType::kQuiesced: return calls_.read_quiesced(record);
    case RecordType::kStream: return calls_.read_stream(record);
    case RecordType::kGone: return threads_.read_gone(record);
    case RecordType::kHandlerRun: return handlers_.read_handler_run(record);
    case RecordType::kHandlerWait: return handlers_.read_handler_wait(record);
    case RecordType::kHandlerHeld: return handlers_.read_handler_held(record);
    case RecordType::kCuda: return cuda_.read_cuda(record);
    case RecordType::kCudaFunction: return cuda_.read_cuda_function(record);
    case RecordType::kMpi: return cuda_.read_mpi(record);
    case RecordType::kVforkCall: return forks_.read_vfork_call(record);
    case RecordType::kPythonStacks: return python_.read_python_stacks(record);
    case RecordType::kPythonAtFork: return python_.read_python_at_fork(record);
    case RecordType::kPythonSignal: return python_.read_python_signal(record);
    case RecordType::kCudaIpc: return cuda_.read_cuda_ipc(record);
    case RecordType::kUnflushed: return read_unflushed(trace_, record);
    case RecordType::kFlush: return read_flush(trace_, record);
    case RecordType::kThreadLife: return foresight_.read_thread_life(record);
    case RecordType::kLockOrder: return foresight_.read_lock_order(record);
    case RecordType::kRacyTouch: return foresight_.read_racy_touch(record);
    case RecordType::kShare: return read_share(trace_, record);
    case RecordType::kShareUse: return read_share_use(trace_, record);
    case RecordType::kDraw: return read_draw(trace_, record);
    case RecordType::kTimer: return read_timer(trace_, record);
    case RecordType::kFileLock: return read_file_lock(trace_, record);
    case RecordType::kChildEnd: return forks_.read_child_end(record);
    // kModuleGone needs no reader: a later module at the same addresses replaces the module that is gone.
    case RecordType::kModuleGone:
    // Only the writers of the trace use kRecent records.
    case RecordType::kRecent:
    // kBlockedSignals records are for people who read a dump of the trace. No rule uses them.
    case RecordType::kBlockedSignals: return;
  }
}
#pragma GCC diagnostic pop

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
  module.owner = trace_.file().owner();
  const model::ProcessId process = trace_.process_of(record);
  if (module.path.empty()) has_module_without_path_ = true;
  if (module.path.ends_with("/libforksight.so")) trace_.model().processes[process].shim_start = module.start;
  if (!trace_.modules().add(process, std::move(module))) ++modules_left_out_;
}

}  // namespace forksight::collect
