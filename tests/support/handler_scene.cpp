#include "support/handler_scene.hpp"

#include <algorithm>
#include <cstring>

namespace forksight::test {

namespace {

constexpr std::uint64_t kPoolBias = 0x7f00'0000'0000;
constexpr std::uint64_t kProgramBias = 0x5550'0000'0000;
constexpr std::uint32_t kSets = 2;

template <class T>
void put(std::vector<std::byte>& payload, const T& value) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
  payload.insert(payload.end(), bytes, bytes + sizeof value);
}

}  // namespace

HandlerTrace::HandlerTrace() {
  trace.module("/usr/lib/libpool.so", kPoolBias, kPoolBias, kPoolBias + 0x50000);
  trace.module("/opt/app/app", kProgramBias, kProgramBias, kProgramBias + 0x10000);
  forking = trace.thread(kParent, "app", 0, 0, 0, trace::kThreadMain);
  worker = trace.thread(kHolder, "worker", kParent, kProgramBias + 0x1200);
  std::vector<std::byte> payload;
  put(payload, trace::HandlersRecord{kSets, 0});
  put(payload, trace::HandlerEntry{kPoolBias + 0x100, kPoolBias + 0x200, 0});
  put(payload, trace::HandlerEntry{kProgramBias + 0x100, 0, kProgramBias + 0x300});
  handlers = trace.append(trace::RecordType::kHandlers, payload);
}

void HandlerTrace::make_child() {
  trace::ForkRecord fixed{};
  fixed.ordinal = 1;
  fixed.forking_thread = forking;
  fixed.handlers = handlers;
  fixed.tasks = 2;
  fork = trace.fork(fixed, {worker}, {});
  trace.record(trace::RecordType::kForked, trace::ForkedRecord{fork, kChild, 0, 100'000});
  trace.as(kChild);
  trace::HeldRecord held{fork, kLockAddress, worker, 0, trace::LockKind::kMutex, 40, {}};
  const auto memory = mutex_memory(0, kHolder);
  std::copy(memory.begin(), memory.end(), held.memory);
  held_ = trace.record(trace::RecordType::kHeld, held);
}

std::uint64_t HandlerTrace::run(trace::HandlerPhase phase, std::optional<std::uint32_t> running) {
  std::vector<std::byte> payload;
  const std::uint32_t word = running ? trace::pack_running(phase, *running) : 0;
  put(payload, trace::HandlerRunRecord{fork, handlers, 0, fork == 0 ? forking : 0, 1'000, word, kSets});
  for (std::uint32_t i = 0; i < kSets; ++i) put(payload, trace::HandlerTimes{1000 + i, 2000 + i, 3000 + i});
  return trace.append(trace::RecordType::kHandlerRun, payload);
}

std::uint64_t HandlerTrace::wait(std::uint64_t run, trace::HandlerWaitKind kind, std::uint64_t owner,
                                 std::uint32_t done) {
  return trace.record(trace::RecordType::kHandlerWait,
                      trace::HandlerWaitRecord{run, kLockAddress, owner, 0, 0, kind, 1, 0, done});
}

void HandlerTrace::hold(std::uint64_t wait, std::uint64_t lock) {
  trace.record(trace::RecordType::kHandlerHeld, trace::HandlerHeldRecord{wait, lock, 0, 1, 0});
}

void HandlerTrace::touch() {
  trace.record(trace::RecordType::kTouch, trace::TouchRecord{fork, trace::TouchKind::kLock, trace::TouchAction::kNone,
                                                             held_, 0, kLockAddress, 0, 0, 0, 0, 0});
}

TraceBuilder whole_handler_trace() {
  HandlerTrace scene;
  scene.hold(scene.wait(scene.run(trace::HandlerPhase::kPrepare, 0), trace::HandlerWaitKind::kJoin, scene.worker), 64);
  scene.make_child();
  scene.trace.as(kParent);
  std::vector<std::byte> payload;
  put(payload, trace::GoneRecord{scene.fork, 1, 0});
  put(payload, scene.worker);
  scene.trace.append(trace::RecordType::kGone, payload);
  scene.run(trace::HandlerPhase::kParent, std::nullopt);
  scene.trace.as(kChild);
  scene.wait(scene.run(trace::HandlerPhase::kChild, 1), trace::HandlerWaitKind::kLock, scene.worker);
  scene.touch();
  return scene.trace;
}

}  // namespace forksight::test
