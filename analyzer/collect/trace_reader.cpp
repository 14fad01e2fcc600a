#include "collect/trace_reader.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "collect/trace_words.hpp"
#include "forksight/abi/mutex.hpp"
#include "libc/lock_layout.hpp"

namespace forksight::collect {

using trace::RecordType;

namespace {

constexpr std::size_t kMostNotes = 64;  // kinds of them, of one file

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TraceReader::TraceReader(const TraceFile& file, model::Model& model, ProcessTable& processes, bool symbolize)
    : file_(file),
      model_(model),
      processes_(processes),
      symbolize_(symbolize),
      first_fork_(model.forks.size()),
      first_thread_(model.threads.size()) {}

void TraceReader::read() {
  if (!file_.records().empty()) {
    creator_ = processes_.enter_creator(file_.info());
    by_pid_[file_.info().pid] = creator_;
    has_fork_[creator_] = true;
    for (const TraceRecord& record : file_.records()) read_record(record);
    attach_workers();
    attach_handler_runs();
    attach_lock_orders();
    if (symbolize_) deferred_.resolve(model_);
    sort_threads_by_owner();
    join_python();
    for (const auto& [pid, process] : by_pid_) {
      if (file_.has_gaps()) model_.processes[process].has_gaps = true;
    }
  }
  tell_notes();
  model_.limits.insert(model_.limits.end(), file_.limits().begin(), file_.limits().end());
  const auto say = [&](const std::string& what) { model_.limits.push_back(file_.name() + ": " + what); };
  const abi::Version libc = file_.info().libc.version;
  if (!file_.records().empty() && !abi::Mutex::kVersions.have(libc)) {
    say(libc.is_known()
            ? fmt::format("glibc {}.{} is not known to this build: nothing is said about locks", libc.major, libc.minor)
            : "which libc its processes ran on is not known: nothing is said about locks");
  }
  if (bad_references_ > 0)
    say(fmt::format("{} references lead to no earlier record of the right type and were ignored", bad_references_));
  if (modules_left_out_ > 0)
    say(fmt::format("{} modules more than any process can have were left out", modules_left_out_));
  if (notes_left_out_ > 0) say(fmt::format("{} notes more of its processes were left out", notes_left_out_));
  if (free_locks_touched_ > 0)
    say(fmt::format("{} operations on locks that nobody held at the fork were ignored", free_locks_touched_));
}

void TraceReader::read_record(const TraceRecord& record) {
  // clang-format off
  switch (record.type) {
#define FORKSIGHT_RECORD(id, number, name, type, words) case RecordType::id: return read_##name(record);
#include "forksight/trace/records.def"
  }
  // clang-format on
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

// What comes to its place supersedes it.
void TraceReader::read_module_gone(const TraceRecord&) {}

// The writers' own.
void TraceReader::read_recent(const TraceRecord&) {}

// For whoever reads the dump: no rule asks for it.
void TraceReader::read_blocked_signals(const TraceRecord&) {}

void TraceReader::read_stack(const TraceRecord& record) {
  become(record, static_cast<std::size_t>(&record - file_.records().data()));
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
  const model::ProcessId process = process_of(record);
  if (module.path.ends_with("/libforksight.so")) model_.processes[process].shim_start = module.start;
  if (!modules_.add(process, std::move(module))) ++modules_left_out_;
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
  thread.pointer = fixed.thread_pointer;
  thread.is_main = (fixed.flags & trace::kThreadMain) != 0;
  thread.has_ended = (fixed.flags & trace::kThreadEnded) != 0;
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

void TraceReader::read_note(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::NoteRecord>();
  if (fixed.code == trace::NoteCode::kCudaIpcFull) model_.processes[process_of(record)].has_gaps = true;
  if (notes_.size() == kMostNotes && !notes_.contains(fixed.code)) {
    ++notes_left_out_;
    return;
  }
  Noted& noted = notes_[fixed.code];
  noted.most = std::max(noted.most, fixed.value);
  noted.pids.insert(record.pid);
}

// A process says it at each fork, and so do its children: one sentence for all of them.
void TraceReader::tell_notes() {
  for (const auto& [code, noted] : notes_) {
    const std::string who = noted.pids.size() == 1 ? fmt::format("process {}", *noted.pids.begin())
                                                   : fmt::format("{} processes, in each at most", noted.pids.size());
    const char* const colon = noted.pids.size() == 1 ? ":" : "";
    model_.limits.push_back(fmt::format("{}: {}{} {}", file_.name(), who, colon, describe_note(code, noted.most)));
  }
}

}  // namespace forksight::collect
