#include "collect/trace_words.hpp"

#include <fmt/core.h>

namespace forksight::collect {

namespace {

template <class E>
bool is_within(E value, E first, E last) {
  return value >= first && value <= last;
}

}  // namespace

bool is_known(trace::LockKind kind) { return is_within(kind, trace::LockKind::kMutex, trace::LockKind::kCustom); }
bool is_known(trace::TouchKind kind) {
  return is_within(kind, trace::TouchKind::kLock, trace::TouchKind::kParallel) ||
         is_within(kind, trace::TouchKind::kCondition, trace::TouchKind::kFutexWait) ||
         kind == trace::TouchKind::kLibcCall || kind == trace::TouchKind::kExit ||
         kind == trace::TouchKind::kCudaCall || kind == trace::TouchKind::kMpiCall ||
         kind == trace::TouchKind::kTimerWait;
}
bool is_known(trace::CureMethod method) {
  return is_within(method, trace::CureMethod::kClamp, trace::CureMethod::kRebuild);
}
bool is_known(trace::CureResult result) {
  return is_within(result, trace::CureResult::kApplied, trace::CureResult::kRefusedNoImage);
}

bool is_known(trace::HandlerPhase phase) {
  return is_within(phase, trace::HandlerPhase::kPrepare, trace::HandlerPhase::kChild);
}
bool is_known(trace::MpiKind kind) { return is_within(kind, trace::MpiKind::kMpi, trace::MpiKind::kUcx); }
bool is_known(trace::HandlerWaitKind kind) {
  return is_within(kind, trace::HandlerWaitKind::kLock, trace::HandlerWaitKind::kCondition);
}

model::LockKind to_model(trace::LockKind kind) {
  switch (kind) {
    case trace::LockKind::kRwlockRead: return model::LockKind::kRwlockRead;
    case trace::LockKind::kRwlockWrite: return model::LockKind::kRwlockWrite;
    case trace::LockKind::kSpinlock: return model::LockKind::kSpinlock;
    case trace::LockKind::kSemaphore: return model::LockKind::kSemaphore;
    case trace::LockKind::kGuard: return model::LockKind::kGuard;
    case trace::LockKind::kCustom: return model::LockKind::kCustom;
    case trace::LockKind::kBarrier: return model::LockKind::kBarrier;
    case trace::LockKind::kCondition: return model::LockKind::kCondition;
    case trace::LockKind::kMutex: break;
  }
  return model::LockKind::kMutex;
}

model::RuntimeKind to_model(trace::RuntimeKind kind) {
  switch (kind) {
    case trace::RuntimeKind::kLibgomp: return model::RuntimeKind::kLibgomp;
    case trace::RuntimeKind::kLibomp: return model::RuntimeKind::kLibomp;
    case trace::RuntimeKind::kLibiomp5: return model::RuntimeKind::kLibiomp5;
    case trace::RuntimeKind::kUnknown: break;
  }
  return model::RuntimeKind::kUnknown;
}

model::TouchKind to_model(trace::TouchKind kind) {
  switch (kind) {
    case trace::TouchKind::kUnlockRefused: return model::TouchKind::kUnlockRefused;
    case trace::TouchKind::kParallel: return model::TouchKind::kParallel;
    case trace::TouchKind::kFutexWait: return model::TouchKind::kFutexWait;
    case trace::TouchKind::kCondition: return model::TouchKind::kCondition;
    case trace::TouchKind::kBarrier: return model::TouchKind::kBarrier;
    case trace::TouchKind::kLibcCall: return model::TouchKind::kLibcCall;
    case trace::TouchKind::kCudaCall: return model::TouchKind::kCudaCall;
    case trace::TouchKind::kMpiCall: return model::TouchKind::kMpiCall;
    case trace::TouchKind::kExit: return model::TouchKind::kExit;
    case trace::TouchKind::kTimerWait: return model::TouchKind::kTimerWait;
    case trace::TouchKind::kLock: break;
  }
  return model::TouchKind::kLock;
}

model::TouchAction to_model(trace::TouchAction action) {
  switch (action) {
    case trace::TouchAction::kAborted: return model::TouchAction::kAborted;
    case trace::TouchAction::kRecovered: return model::TouchAction::kRecovered;
    case trace::TouchAction::kGiven: return model::TouchAction::kGiven;
    case trace::TouchAction::kNone: break;
  }
  return model::TouchAction::kNone;
}

model::SyncOperation to_model(trace::SyncOperation operation) {
  switch (operation) {
    case trace::SyncOperation::kDestroy: return model::SyncOperation::kDestroy;
    case trace::SyncOperation::kSignal: return model::SyncOperation::kSignal;
    case trace::SyncOperation::kBroadcast: return model::SyncOperation::kBroadcast;
    case trace::SyncOperation::kWait: return model::SyncOperation::kWait;
    case trace::SyncOperation::kNone: break;
  }
  return model::SyncOperation::kNone;
}

std::optional<model::AwaitedKind> to_model(trace::WaitKind kind) {
  switch (kind) {
    case trace::WaitKind::kCondition: return model::AwaitedKind::kCondition;
    case trace::WaitKind::kBarrier: return model::AwaitedKind::kBarrier;
    case trace::WaitKind::kJoin: return model::AwaitedKind::kThread;
    case trace::WaitKind::kSemaphore: return model::AwaitedKind::kSemaphore;
    case trace::WaitKind::kFutex: return model::AwaitedKind::kFutex;
    case trace::WaitKind::kSignals: return model::AwaitedKind::kSignals;
    case trace::WaitKind::kNone: break;
  }
  return std::nullopt;
}

model::CureMethod to_model(trace::CureMethod method) {
  switch (method) {
    case trace::CureMethod::kQuiesce: return model::CureMethod::kQuiesce;
    case trace::CureMethod::kRebuild: return model::CureMethod::kRebuild;
    case trace::CureMethod::kClamp: break;
  }
  return model::CureMethod::kClamp;
}

model::MpiKind to_model(trace::MpiKind kind) {
  return kind == trace::MpiKind::kUcx ? model::MpiKind::kUcx : model::MpiKind::kMpi;
}

model::HandlerPhase to_model(trace::HandlerPhase phase) {
  switch (phase) {
    case trace::HandlerPhase::kParent: return model::HandlerPhase::kParent;
    case trace::HandlerPhase::kChild: return model::HandlerPhase::kChild;
    case trace::HandlerPhase::kPrepare: break;
  }
  return model::HandlerPhase::kPrepare;
}

model::HandlerWaitKind to_model(trace::HandlerWaitKind kind) {
  switch (kind) {
    case trace::HandlerWaitKind::kJoin: return model::HandlerWaitKind::kJoin;
    case trace::HandlerWaitKind::kCondition: return model::HandlerWaitKind::kCondition;
    case trace::HandlerWaitKind::kLock: break;
  }
  return model::HandlerWaitKind::kLock;
}

model::CureResult to_model(trace::CureResult result) {
  switch (result) {
    case trace::CureResult::kRefusedInRegion: return model::CureResult::kRefusedInRegion;
    case trace::CureResult::kRefusedByRuntime: return model::CureResult::kRefusedByRuntime;
    case trace::CureResult::kRefusedNoImage: return model::CureResult::kRefusedNoImage;
    case trace::CureResult::kApplied: break;
  }
  return model::CureResult::kApplied;
}

model::CudaWay to_model(trace::CudaWay way) {
  switch (way) {
    case trace::CudaWay::kSymbol: return model::CudaWay::kSymbol;
    case trace::CudaWay::kDlsym: return model::CudaWay::kDlsym;
    case trace::CudaWay::kGetProcAddress: return model::CudaWay::kGetProcAddress;
    case trace::CudaWay::kUnknown: break;
  }
  return model::CudaWay::kUnknown;
}

std::string describe_note(trace::NoteCode code, std::uint64_t value) {
  switch (code) {
    case trace::NoteCode::kThreadTableFull: return fmt::format("{} threads did not fit and were not recorded", value);
    case trace::NoteCode::kHeldOverflow:
      return fmt::format("{} lock acquisitions did not fit a thread's list of held locks", value);
    case trace::NoteCode::kLostWaitsFull:
      return fmt::format(
          "{} condition variables and barriers on which lost threads waited did not fit the list and were not watched",
          value);
    case trace::NoteCode::kLockOrderFull:
      return fmt::format(
          "--lock-order: {} acquisitions of a lock under another one did not fit the table: an order may be missing",
          value);
    case trace::NoteCode::kHoldTimesFull:
      return fmt::format(
          "--predict: {} acquisitions did not fit the table: the time that a lock was held may be too low, or missing",
          value);
    case trace::NoteCode::kCudaIpcFull:
      return fmt::format(
          "{} calls that share device memory were not recorded, so it is not known what the process shared afterwards",
          value);
    case trace::NoteCode::kConfined:
      return fmt::format(
          "a seccomp filter would kill the process for {} system calls of the shim: what these calls find out is "
          "missing",
          value);
    case trace::NoteCode::kHandlersUnwrapped:
      return fmt::format("{} atfork handlers did not fit the list: they are neither timed nor named while they run",
                         value);
  }
  return fmt::format("note {} with value {}, which this build does not know", static_cast<std::uint32_t>(code), value);
}

}  // namespace forksight::collect
