#include "support/scenes.hpp"

#include <algorithm>
#include <stdexcept>

#include "collect/process_table.hpp"
#include "collect/trace_file.hpp"
#include "collect/trace_reader.hpp"

namespace forksight::test {

namespace {

constexpr std::uint64_t kGompBias = 0x7f00'0000'0000;
constexpr std::uint64_t kAppBias = 0x5550'0000'0000;

template <class T>
void put(std::vector<std::uint8_t>& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

}  // namespace

std::vector<std::uint8_t> mutex_memory(std::uint32_t kind, std::int32_t owner, std::uint32_t lock) {
  std::vector<std::uint8_t> bytes(40);
  put(bytes, 0, lock);
  put(bytes, 8, owner);
  put(bytes, 16, kind);
  return bytes;
}

std::vector<std::uint8_t> rwlock_memory(std::uint32_t readers, std::int32_t writer) {
  std::vector<std::uint8_t> bytes(56);
  put(bytes, 0, readers);
  put(bytes, 24, writer);
  return bytes;
}

std::vector<std::uint8_t> spinlock_memory(std::int32_t value) {
  std::vector<std::uint8_t> bytes(4);
  put(bytes, 0, value);
  return bytes;
}

std::vector<std::uint8_t> semaphore_memory(std::uint32_t value) {
  std::vector<std::uint8_t> bytes(32);
  put(bytes, 0, value);
  return bytes;
}

std::vector<std::uint8_t> guard_memory(std::uint64_t value) {
  std::vector<std::uint8_t> bytes(8);
  put(bytes, 0, value);
  return bytes;
}

std::vector<std::uint8_t> condition_memory(std::uint32_t waiters) {
  std::vector<std::uint8_t> bytes(48);
  put(bytes, 36, waiters << 3U);
  return bytes;
}

std::vector<std::uint8_t> barrier_memory(std::uint32_t arrived, std::uint32_t left) {
  std::vector<std::uint8_t> bytes(32);
  put(bytes, 0, arrived);
  put(bytes, 8, arrived + 1);
  put(bytes, 16, left);
  return bytes;
}

LockTrace::LockTrace(const LockScene& scene, std::int32_t child_pid) : child(child_pid) {
  trace.module("/opt/app/app", kAppBias, kAppBias, kAppBias + 0x10000);
  const std::uint64_t forking = trace.thread(kParent, "app", 0, 0, 0, trace::kThreadMain);
  const std::uint64_t holder = trace.thread(kHolder, "worker", kParent, kAppBias + 0x1200, 0, scene.holder_flags);
  trace::ForkRecord fixed{};
  fixed.ordinal = 1;
  fixed.forking_thread = forking;
  fixed.tasks = 2;
  fork = trace.fork(fixed, {holder}, {});
  trace.poke(fork + sizeof(trace::RecordHeader) + sizeof fixed,
             trace::ForkThread{holder, kLockAddress, scene.holder_waits, 0});
  trace.as(child);
  trace::HeldRecord record{fork, kLockAddress, scene.by_forking_thread ? forking : holder,
                           0,    scene.kind,   static_cast<std::uint32_t>(scene.memory.size()),
                           {}};
  std::copy(scene.memory.begin(), scene.memory.end(), record.memory);
  held = trace.record(trace::RecordType::kHeld, record);
  trace.as(kParent);
  trace.record(trace::RecordType::kForked, trace::ForkedRecord{fork, child, 0, 100'000});
}

std::uint64_t LockTrace::touch(trace::TouchKind kind, std::uint32_t flags, trace::TouchAction action,
                               trace::SyncOperation operation) {
  trace.as(child);
  return trace.record(trace::RecordType::kTouch, trace::TouchRecord{fork, kind, action, held, 0, kLockAddress, 0, 0, 0,
                                                                    flags, static_cast<std::uint32_t>(operation)});
}

std::uint64_t LockTrace::wait(std::uint32_t flags) {
  constexpr std::uint32_t kWaitPrivate = 0x80;
  trace.as(child);
  return trace.record(trace::RecordType::kTouch,
                      trace::TouchRecord{fork, trace::TouchKind::kFutexWait, trace::TouchAction::kNone, 0, 0,
                                         kLockAddress, 0, 7, kWaitPrivate, flags, 0});
}

void LockTrace::name(std::uint64_t touch, std::string_view text) {
  const trace::LockNameRecord fixed{touch, static_cast<std::uint32_t>(text.size()), 0};
  std::vector<std::byte> payload(sizeof fixed + text.size());
  std::memcpy(payload.data(), &fixed, sizeof fixed);
  std::memcpy(payload.data() + sizeof fixed, text.data(), text.size());
  trace.as(child).append(trace::RecordType::kLockName, payload);
}

void LockTrace::end(std::uint64_t touch, std::int32_t result) {
  trace.as(child);
  trace.record(trace::RecordType::kTouchEnd, trace::TouchEndRecord{touch, result, 0});
}

PoolTrace::PoolTrace(const PoolScene& scene, std::int32_t child_pid) : child(child_pid) {
  trace.module("/usr/lib/libgomp.so.1", kGompBias, kGompBias, kGompBias + 0x50000);
  const std::uint64_t forking = trace.thread(kParent, "app", 0, 0, 0, trace::kThreadMain);
  std::vector<std::uint64_t> workers;
  for (std::uint32_t i = 0; i < scene.workers; ++i) {
    workers.push_back(trace.thread(kHolder + static_cast<std::int32_t>(i), "app", kParent, kGompBias + 0x1500));
  }
  const std::uint64_t first = workers.empty() ? 0 : workers.front();
  runtime = trace.record(trace::RecordType::kRuntime,
                         trace::RuntimeRecord{kGompBias, scene.kind, scene.flags, 4, 0, scene.workers, scene.workers,
                                              first, scene.workers});
  trace::ForkRecord fixed{};
  fixed.ordinal = 1;
  fixed.forking_thread = forking;
  fixed.tasks = scene.workers + 1;
  fork = trace.fork(fixed, workers, {runtime});
  trace.record(trace::RecordType::kForked, trace::ForkedRecord{fork, child, 0, 100'000});
}

std::uint64_t PoolTrace::touch(std::uint32_t team, std::uint32_t flags) {
  trace.as(child);
  return trace.record(trace::RecordType::kTouch,
                      trace::TouchRecord{fork, trace::TouchKind::kParallel, trace::TouchAction::kNone, 0, runtime,
                                         0x7f00'0000'2000, 0, team, 0, flags, 0});
}

void PoolTrace::end(std::uint64_t touch) {
  trace.as(child);
  trace.record(trace::RecordType::kTouchEnd, trace::TouchEndRecord{touch, 0, 0});
}

void PoolTrace::cure(trace::CureMethod method, trace::CureResult result, bool used, std::uint32_t team) {
  trace.as(child);
  trace.record(trace::RecordType::kCure,
               trace::CureRecord{fork, runtime, method, result, 0, used ? 1U : 0U, 0, team, 0});
}

LibcTrace::LibcTrace(const LibcCallScene& scene, std::uint32_t flags, std::int32_t child_pid) : child(child_pid) {
  const std::uint64_t forking = trace.thread(kParent, "app", 0, 0, 0, trace::kThreadMain);
  other = trace.thread(kHolder, "worker", kParent, kAppBias + 0x1200);
  trace::ForkRecord fixed{};
  fixed.ordinal = 1;
  fixed.forking_thread = forking;
  fixed.tasks = 2;
  fork = trace.fork(fixed, {other}, {});
  const std::uint64_t function = call(scene);
  if ((flags & trace::kInFlightEnded) == 0) trace.as(child);
  in_flight = trace.record(trace::RecordType::kInFlight, trace::InFlightRecord{fork, other, function, 0, flags, 0});
  trace.as(kParent);
  trace.record(trace::RecordType::kForked, trace::ForkedRecord{fork, child, 0, 100'000});
}

std::uint64_t LibcTrace::call(const LibcCallScene& call) {
  trace::LibcCallRecord record{call.locks, {}};
  std::strncpy(record.name, call.function, sizeof record.name - 1);
  return trace.record(trace::RecordType::kLibcCall, record);
}

void LibcTrace::quiesced(std::uint64_t waited_ns, std::uint32_t waited_for, std::uint32_t left) {
  trace.as(kParent);
  trace.record(trace::RecordType::kQuiesced, trace::QuiescedRecord{fork, waited_ns, waited_for, left});
}

std::uint64_t LibcTrace::touch(const LibcCallScene& function, std::uint32_t flags) {
  trace.as(child);
  const std::uint64_t record = call(function);
  return trace.record(trace::RecordType::kTouch,
                      trace::TouchRecord{fork, trace::TouchKind::kLibcCall, trace::TouchAction::kNone, in_flight, 0,
                                         record, 0, 0, 0, flags, 0});
}

void LibcTrace::end(std::uint64_t touch) {
  trace.as(child);
  trace.record(trace::RecordType::kTouchEnd, trace::TouchEndRecord{touch, 0, 0});
}

void read_into(model::Model& model, const TraceBuilder& trace) {
  const auto file = collect::TraceFile::parse("test.fstrace", trace.bytes());
  if (!file) throw std::runtime_error(file.error());
  collect::ProcessTable processes(model);
  collect::TraceReader(file.value(), model, processes, false).read();
}

model::Model read_model(const TraceBuilder& trace) {
  model::Model model;
  read_into(model, trace);
  return model;
}

model::Wait futex_wait(std::int32_t tid) {
  model::Wait wait;
  wait.tid = tid;
  wait.name = "app";
  wait.kind = model::WaitKind::kFutex;
  wait.object = 0x555'0000'4040;
  wait.state = 'S';
  return wait;
}

model::Stack make_stack(std::initializer_list<const char*> frames) {
  model::Stack stack;
  for (const std::string text : frames) {
    model::Frame frame;
    const std::size_t space = text.find(' ');
    const std::size_t colon = text.find(':', space);
    frame.function = text.substr(0, space);
    const std::string place = text.substr(space + 1);
    if (colon == std::string::npos) {
      frame.module = "/usr/lib/" + place;
      frame.offset = 0x1234;
    } else {
      frame.module = "/opt/app/app";
      frame.file = "/src/app/" + text.substr(space + 1, colon - space - 1);
      frame.line = std::stoi(text.substr(colon + 1));
    }
    stack.frames.push_back(std::move(frame));
  }
  return stack;
}

}  // namespace forksight::test
