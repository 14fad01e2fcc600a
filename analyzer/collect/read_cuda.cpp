#include "collect/read_cuda.hpp"

#include <algorithm>
#include <cstring>

#include "collect/trace_words.hpp"
#include "forksight/trace/cuda.hpp"

namespace forksight::collect {

using trace::RecordType;

void CudaReader::read_cuda(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::CudaRecord>();
  const auto fork = trace_.find(fixed.fork, RecordType::kFork);
  if (!fork || model_.forks[fork->index].cuda) return;
  const model::ForkId id = fork->index;
  const model::ProcessId process = trace_.process_of(record);
  model::Cuda cuda;
  cuda.library = trace_.modules().image_of(process)->find_path_by_bias(fixed.module_bias);
  cuda.is_initialised = (fixed.flags & trace::kCudaInitialised) != 0;
  cuda.was_lost = (fixed.flags & trace::kCudaLost) != 0;
  cuda.asked = (fixed.flags & trace::kCudaAsked) != 0;
  cuda.version = fixed.driver_version;
  cuda.devices = fixed.devices;
  for (int device = 0; device < 64; ++device) {
    if ((fixed.active_contexts >> static_cast<unsigned>(device) & 1U) != 0) cuda.active_contexts.push_back(device);
  }
  cuda.init_way = to_model(fixed.init_way);
  cuda.init_tid = fixed.init_tid;
  cuda.init_thread.assign(fixed.init_thread, ::strnlen(fixed.init_thread, sizeof fixed.init_thread));
  model_.forks[id].cuda = std::move(cuda);
  trace_.name_stack(
      process, fixed.init_stack, [id](model::Model & m) -> auto& { return m.forks[id].cuda->init_stack; });
  trace_.bind(record, id);
}

namespace {

std::optional<model::CudaIpcKind> kind_of(trace::CudaIpcKind kind) {
  switch (kind) {
    case trace::CudaIpcKind::kExport: return model::CudaIpcKind::kExport;
    case trace::CudaIpcKind::kOpen: return model::CudaIpcKind::kOpen;
    case trace::CudaIpcKind::kClose: return model::CudaIpcKind::kClose;
    case trace::CudaIpcKind::kFree: return model::CudaIpcKind::kFree;
    case trace::CudaIpcKind::kEnd: return model::CudaIpcKind::kEnd;
    case trace::CudaIpcKind::kContextGone: return model::CudaIpcKind::kContextGone;
  }
  return std::nullopt;
}

}  // namespace

void CudaReader::read_cuda_ipc(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::CudaIpcRecord>();
  const auto kind = kind_of(fixed.kind);
  if (!kind) return;
  const std::size_t index = model_.cuda_ipc.size();
  model::CudaIpcCall call;
  call.process = trace_.process_of(record);
  call.tid = record.tid;
  call.kind = *kind;
  call.handle = fixed.handle;
  call.address = fixed.address;
  call.bytes = fixed.bytes;
  call.began_ns = fixed.began_ns;
  call.ended_ns = fixed.ended_ns;
  call.used_ns = fixed.used_ns;
  call.result = fixed.result;
  const model::ProcessId process = call.process;
  model_.cuda_ipc.push_back(std::move(call));
  trace_.name_stack(
      process, fixed.stack, [index](model::Model & m) -> auto& { return m.cuda_ipc[index].stack; });
}

void CudaReader::read_mpi(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::MpiRecord>();
  const auto fork = trace_.find(fixed.fork, RecordType::kFork);
  if (!fork || !is_known(fixed.kind)) return;
  const model::MpiKind kind = to_model(fixed.kind);
  auto& mpi = model_.forks[fork->index].mpi;
  if (std::ranges::find(mpi, kind, &model::Mpi::kind) != mpi.end()) return;
  mpi.push_back({kind,
                 fixed.module_bias == 0
                     ? std::string()
                     : trace_.modules().image_of(trace_.process_of(record))->find_path_by_bias(fixed.module_bias),
                 (fixed.flags & trace::kMpiLost) != 0});
}

void CudaReader::read_cuda_function(const TraceRecord& record) {
  const auto fixed = record.fixed<trace::CudaFunctionRecord>();
  cuda_functions_.emplace_back(fixed.name, ::strnlen(fixed.name, sizeof fixed.name));
  trace_.bind(record, cuda_functions_.size() - 1);
}

}  // namespace forksight::collect
