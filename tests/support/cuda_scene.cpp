#include "support/cuda_scene.hpp"

namespace forksight::test {

namespace {

constexpr std::uint64_t kDriverBias = 0x7f10'0000'0000;

}  // namespace

CudaTrace::CudaTrace(const CudaScene& scene, std::int32_t child_pid) : child(child_pid) {
  trace.module("/usr/lib/libcuda.so.1", kDriverBias, kDriverBias, kDriverBias + 0x50000);
  trace::ForkRecord fixed{};
  fixed.ordinal = 1;
  fixed.forking_thread = trace.thread(kParent, "app", 0, 0, 0, trace::kThreadMain);
  fixed.tasks = 1;
  fork = trace.fork(fixed, {}, {});
  trace::CudaRecord record{};
  record.fork = fork;
  record.module_bias = kDriverBias;
  if (scene.is_init_seen) {
    record.init_stack = trace.stack(kDriverBias - 0x1000, {1, 2, 3, 4});
    record.init_way = trace::CudaWay::kDlsym;
    record.init_tid = kParent;
    std::memcpy(record.init_thread, "app", 4);
  }
  record.driver_version = 12020;
  record.devices = 2;
  record.active_contexts = scene.active_contexts;
  record.flags = scene.flags;
  trace.record(trace::RecordType::kCuda, record);
  trace.record(trace::RecordType::kForked, trace::ForkedRecord{fork, child, 0, 100'000});
}

std::uint64_t CudaTrace::call(const char* function) {
  trace.as(child);
  trace::CudaFunctionRecord named{kDriverBias + 0x2000, {}};
  std::strncpy(named.name, function, sizeof named.name - 1);
  const std::uint64_t name = trace.record(trace::RecordType::kCudaFunction, named);
  return trace.record(trace::RecordType::kTouch,
                      trace::TouchRecord{fork, trace::TouchKind::kCudaCall, trace::TouchAction::kNone, 0, name,
                                         named.address, 0, 0, 0, 0, 0});
}

void CudaTrace::answer(std::uint64_t touch, std::int32_t result) {
  trace.as(child);
  trace.record(trace::RecordType::kTouchEnd, trace::TouchEndRecord{touch, result, 0});
}

}  // namespace forksight::test
