#include "render/names.hpp"

namespace forksight::render {

const char* name_of(Certainty certainty) {
  switch (certainty) {
    case Certainty::kProven: return "proven";
    case Certainty::kLikely: return "likely";
    case Certainty::kPossible: return "possible";
    case Certainty::kUnknown: break;
  }
  return "unknown";
}

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kHang: return "hang";
    case Outcome::kError: return "error";
    case Outcome::kCorruption: return "corruption";
    case Outcome::kCured: return "cured";
    case Outcome::kMayHang: break;
  }
  return "may-hang";
}

const char* name_of(CulpritKind kind) {
  switch (kind) {
    case CulpritKind::kLock: return "lock";
    case CulpritKind::kPool: return "pool";
    case CulpritKind::kThread: return "thread";
    case CulpritKind::kHandler: return "handler";
    case CulpritKind::kPipe: return "pipe";
    case CulpritKind::kFileLock: return "file-lock";
    case CulpritKind::kDevice: return "device";
    case CulpritKind::kStream: return "stream";
    case CulpritKind::kMemory: return "memory";
    case CulpritKind::kTimer: return "timer";
    case CulpritKind::kProcess: break;
  }
  return "process";
}

const char* name_of(model::CudaWay way) {
  switch (way) {
    case model::CudaWay::kSymbol: return "symbol";
    case model::CudaWay::kDlsym: return "dlsym";
    case model::CudaWay::kGetProcAddress: return "cuGetProcAddress";
    case model::CudaWay::kUnknown: break;
  }
  return "unknown";
}

const char* name_of(model::PoolState state) {
  switch (state) {
    case model::PoolState::kHandled: return "handled";
    case model::PoolState::kRebuilds: return "rebuilds";
    case model::PoolState::kLost: break;
  }
  return "lost";
}

const char* name_of(model::Liveness liveness) {
  switch (liveness) {
    case model::Liveness::kAwake: return "awake";
    case model::Liveness::kDead: return "dead";
    case model::Liveness::kDeadButForSignal: return "dead-but-for-signal";
    case model::Liveness::kSpinning: return "spinning";
    case model::Liveness::kStalled: return "stalled";
    case model::Liveness::kVictim: return "victim";
    case model::Liveness::kEnded: return "ended";
    case model::Liveness::kUnknown: break;
  }
  return "unknown";
}

const char* name_of(model::WaitKind kind) {
  switch (kind) {
    case model::WaitKind::kRunning: return "running";
    case model::WaitKind::kFutex: return "futex";
    case model::WaitKind::kWaitChild: return "wait-child";
    case model::WaitKind::kPipeRead: return "pipe-read";
    case model::WaitKind::kPoll: return "poll";
    case model::WaitKind::kSleep: return "sleep";
    case model::WaitKind::kOther: return "other";
    case model::WaitKind::kPipeWrite: return "pipe-write";
    case model::WaitKind::kSocketRead: return "socket-read";
    case model::WaitKind::kSocketWrite: return "socket-write";
    case model::WaitKind::kFileLock: return "file-lock";
    case model::WaitKind::kEventfd: return "eventfd";
    case model::WaitKind::kEventfdWrite: return "eventfd-write";
    case model::WaitKind::kVfork: return "vfork";
    case model::WaitKind::kTraced: return "traced";
    case model::WaitKind::kFifoOpen: return "fifo-open";
    case model::WaitKind::kSemaphore: return "semaphore";
    case model::WaitKind::kSignal: return "signal";
    case model::WaitKind::kUnknown: break;
  }
  return "unknown";
}

const char* name_of(model::EnderKind kind) {
  switch (kind) {
    case model::EnderKind::kTimer: return "timer";
    case model::EnderKind::kSignal: return "signal";
    case model::EnderKind::kAnybody: return "anybody";
    case model::EnderKind::kContinue: return "continue";
    case model::EnderKind::kProcess: break;
  }
  return "process";
}

const char* name_of(model::FutexUse use) {
  switch (use) {
    case model::FutexUse::kMutex: return "mutex";
    case model::FutexUse::kRwlockRead: return "rwlock-read";
    case model::FutexUse::kRwlockWrite: return "rwlock-write";
    case model::FutexUse::kJoin: return "join";
    case model::FutexUse::kGil: return "gil";
    case model::FutexUse::kUnknown: break;
  }
  return "unknown";
}

const char* name_of(model::RuntimeKind kind) {
  switch (kind) {
    case model::RuntimeKind::kLibgomp: return "libgomp";
    case model::RuntimeKind::kLibomp: return "libomp";
    case model::RuntimeKind::kLibiomp5: return "libiomp5";
    case model::RuntimeKind::kUnknown: break;
  }
  return "unknown";
}

const char* name_of(model::CureMethod method) {
  switch (method) {
    case model::CureMethod::kClamp: return "clamp";
    case model::CureMethod::kQuiesce: return "quiesce";
    case model::CureMethod::kRebuild: break;
  }
  return "rebuild";
}

const char* name_of(model::CureResult result) {
  switch (result) {
    case model::CureResult::kRefusedInRegion: return "refused-in-region";
    case model::CureResult::kRefusedByRuntime: return "refused-by-runtime";
    case model::CureResult::kRefusedNoImage: return "refused-no-image";
    case model::CureResult::kApplied: break;
  }
  return "applied";
}

}  // namespace forksight::render
