#include "collect/record_size.hpp"
#include "forksight/trace/handlers.hpp"

#include <cstring>

#include "forksight/trace/cuda.hpp"
#include "forksight/trace/ends.hpp"
#include "forksight/trace/foresight.hpp"
#include "forksight/trace/mpi.hpp"
#include "forksight/trace/vfork.hpp"
#include "forksight/trace/output.hpp"

namespace forksight::collect {

namespace {

template <class T>
bool read_fixed(std::span<const std::byte> payload, T& out) {
  if (payload.size() < sizeof(T)) return false;
  std::memcpy(&out, payload.data(), sizeof(T));
  return true;
}

template <class T>
bool holds(std::span<const std::byte> payload) {
  return payload.size() >= sizeof(T);
}

// Products of two 32-bit counts and small sizes: no overflow in 64 bits.
template <class T, class TailBytes>
bool holds_with_tail(std::span<const std::byte> payload, TailBytes tail_bytes) {
  T fixed;
  return read_fixed(payload, fixed) && payload.size() - sizeof(T) >= tail_bytes(fixed);
}

}  // namespace

bool has_whole_payload(trace::RecordType type, std::span<const std::byte> payload) {
  using trace::RecordType;
  switch (type) {
    case RecordType::kModule:
      return holds_with_tail<trace::ModuleRecord>(payload,
                                                  [](const auto& fixed) { return std::uint64_t{fixed.path_bytes}; });
    case RecordType::kModuleGone: return holds<trace::ModuleGoneRecord>(payload);
    case RecordType::kStack:
      return holds_with_tail<trace::StackRecord>(payload, [](const auto& fixed) { return std::uint64_t{fixed.bytes}; });
    case RecordType::kThread: return holds<trace::ThreadRecord>(payload);
    case RecordType::kRuntime: return holds<trace::RuntimeRecord>(payload);
    case RecordType::kHandlers:
      return holds_with_tail<trace::HandlersRecord>(
          payload, [](const auto& fixed) { return std::uint64_t{fixed.count} * sizeof(trace::HandlerEntry); });
    case RecordType::kFork:
      return holds_with_tail<trace::ForkRecord>(payload, [](const auto& fixed) {
        return std::uint64_t{fixed.thread_count} * sizeof(trace::ForkThread) +
               std::uint64_t{fixed.runtime_count} * sizeof(std::uint64_t);
      });
    case RecordType::kForked: return holds<trace::ForkedRecord>(payload);
    case RecordType::kHeld: return holds<trace::HeldRecord>(payload);
    case RecordType::kTouch: return holds<trace::TouchRecord>(payload);
    case RecordType::kTouchEnd: return holds<trace::TouchEndRecord>(payload);
    case RecordType::kCure: return holds<trace::CureRecord>(payload);
    case RecordType::kLibcCall: return holds<trace::LibcCallRecord>(payload);
    case RecordType::kInFlight: return holds<trace::InFlightRecord>(payload);
    case RecordType::kStream: return holds<trace::StreamRecord>(payload);
    case RecordType::kQuiesced: return holds<trace::QuiescedRecord>(payload);
    case RecordType::kNote: return holds<trace::NoteRecord>(payload);
    case RecordType::kRecent: return true;
    case RecordType::kCuda: return holds<trace::CudaRecord>(payload);
    case RecordType::kCudaFunction: return holds<trace::CudaFunctionRecord>(payload);
    case RecordType::kLockName:
      return holds_with_tail<trace::LockNameRecord>(payload,
                                                    [](const auto& fixed) { return std::uint64_t{fixed.bytes}; });
    case RecordType::kPythonStacks:
      return holds_with_tail<trace::PythonStacksRecord>(payload,
                                                        [](const auto& fixed) { return std::uint64_t{fixed.bytes}; });
    case RecordType::kPythonAtFork: return holds<trace::PythonAtForkRecord>(payload);
    case RecordType::kPythonSignal: return holds<trace::PythonSignalRecord>(payload);
    case RecordType::kGone:
      return holds_with_tail<trace::GoneRecord>(
          payload, [](const auto& fixed) { return std::uint64_t{fixed.count} * sizeof(std::uint64_t); });
    case RecordType::kHandlerRun:
      return holds_with_tail<trace::HandlerRunRecord>(
          payload, [](const auto& fixed) { return std::uint64_t{fixed.count} * sizeof(trace::HandlerTimes); });
    case RecordType::kUnflushed: return holds<trace::UnflushedRecord>(payload);
    case RecordType::kFlush: return holds<trace::FlushRecord>(payload);
    case RecordType::kHandlerWait: return holds<trace::HandlerWaitRecord>(payload);
    case RecordType::kHandlerHeld: return holds<trace::HandlerHeldRecord>(payload);
    case RecordType::kCudaIpc: return holds<trace::CudaIpcRecord>(payload);
    case RecordType::kMpi: return holds<trace::MpiRecord>(payload);
    case RecordType::kVforkCall: return holds<trace::VforkCallRecord>(payload);
    case RecordType::kThreadLife: return holds<trace::ThreadLifeRecord>(payload);
    case RecordType::kLockOrder:
      return holds_with_tail<trace::LockOrderRecord>(
          payload, [](const auto& fixed) { return std::uint64_t{fixed.gates} * sizeof(trace::OrderGate); });
    case RecordType::kChildEnd: return holds<trace::ChildEndRecord>(payload);
    case RecordType::kRacyTouch: return holds<trace::RacyTouchRecord>(payload);
    case RecordType::kShare: return holds<trace::ShareRecord>(payload);
    case RecordType::kShareUse: return holds<trace::ShareUseRecord>(payload);
    case RecordType::kDraw: return holds<trace::DrawRecord>(payload);
    case RecordType::kTimer: return holds<trace::TimerRecord>(payload);
    case RecordType::kFileLock:
      return holds_with_tail<trace::FileLockRecord>(payload,
                                                    [](const auto& fixed) { return std::uint64_t{fixed.path_bytes}; });
  }
  return true;
}

}  // namespace forksight::collect
