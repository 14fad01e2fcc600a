#include "collect/read_output.hpp"

#include <algorithm>
#include <string>

#include "forksight/trace/output.hpp"

namespace forksight::collect {

using trace::RecordType;

namespace {

std::optional<model::FlushKind> kind_of(trace::FlushKind kind) {
  switch (kind) {
    case trace::FlushKind::kFlush: return model::FlushKind::kFlush;
    case trace::FlushKind::kClose: return model::FlushKind::kClose;
    case trace::FlushKind::kAtExit: return model::FlushKind::kAtExit;
    case trace::FlushKind::kGone: return model::FlushKind::kGone;
  }
  return std::nullopt;
}

}  // namespace

void read_unflushed(TraceContext& trace, const TraceRecord& record) {
  model::Model& model = trace.model();
  const auto fixed = record.fixed<trace::UnflushedRecord>();
  const auto fork = trace.find(fixed.fork, RecordType::kFork);
  if (!fork) return;
  model::UnflushedOutput output;
  output.fork = fork->index;
  output.fd = fixed.fd;
  output.number = fixed.number;
  output.bytes = fixed.bytes;
  output.text.assign(fixed.text, std::min<std::size_t>(fixed.text_bytes, sizeof fixed.text));
  trace.bind(record, model.unflushed.size());
  model.unflushed.push_back(std::move(output));
}

void read_flush(TraceContext& trace, const TraceRecord& record) {
  model::Model& model = trace.model();
  const auto fixed = record.fixed<trace::FlushRecord>();
  const auto unflushed = trace.find(fixed.unflushed, RecordType::kUnflushed);
  const auto kind = kind_of(fixed.kind);
  if (!unflushed || !kind) return;
  model::Flush flush;
  if (fixed.fork != 0) {
    const auto fork = trace.find(fixed.fork, RecordType::kFork);
    if (!fork) return;
    flush.fork = fork->index;
    flush.process = trace.child_of(fork->index, record.pid, record.time_ns);
  } else {
    flush.process = trace.process_of(record);
  }
  flush.tid = record.tid;
  flush.kind = *kind;
  const std::size_t output = unflushed->index;
  const std::size_t index = model.unflushed[output].flushes.size();
  model.unflushed[output].flushes.push_back(std::move(flush));
  trace.name_stack(
      model.unflushed[output].flushes[index].process, fixed.stack,
      [ output, index ](model::Model & m) -> auto& { return m.unflushed[output].flushes[index].stack; });
}

}  // namespace forksight::collect
