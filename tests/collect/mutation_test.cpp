// Damages good traces, and passes them to the reader, the rules and the renderers. A test flips bits, overwrites bytes
// and words, or cuts off the end. The damage is the same in each run. A build with sanitizers finds more errors than a
// build without them.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "collect/all_stages.hpp"
#include "forksight/trace/cuda.hpp"
#include "forksight/trace/ends.hpp"
#include "forksight/trace/foresight.hpp"
#include "forksight/trace/mpi.hpp"
#include "forksight/trace/output.hpp"
#include "forksight/trace/vfork.hpp"
#include "support/handler_scene.hpp"
#include "support/rounds.hpp"
#include "support/scenes.hpp"

namespace forksight {
namespace {

const int kRounds = test::rounds_of_fuzzing(4'000);

std::vector<std::byte> good_trace() {
  test::LockTrace scene({});
  scene.end(scene.touch(trace::TouchKind::kLock, trace::kTouchTimed), 110);
  scene.touch(trace::TouchKind::kLock);
  scene.end(scene.wait(trace::kTouchHandlers), 4);
  test::TraceBuilder& trace = scene.trace;
  trace.as(test::kParent);
  const auto stack = trace.stack(0x5550'0000'1234, {1, 2, 3, 4});
  const auto worker = trace.thread(1500, "omp", test::kParent, 0x5550'0000'1300, stack);
  const auto runtime =
      trace.record(trace::RecordType::kRuntime,
                   trace::RuntimeRecord{0x5550'0000'0000, trace::RuntimeKind::kLibgomp, 0, 4, 0, 1, 1, worker, 1});
  trace::ForkRecord fixed{};
  fixed.ordinal = 2;
  fixed.stack = stack;
  fixed.tasks = 9;
  const auto fork = trace.fork(fixed, {worker}, {runtime});
  trace.record(trace::RecordType::kForked, trace::ForkedRecord{fork, 2600, 0, 5});
  trace.as(2600).record(trace::RecordType::kTouch,
                        trace::TouchRecord{fork, trace::TouchKind::kParallel, trace::TouchAction::kNone, 0, runtime,
                                           0x40, stack, 4, 0, 0, 0});
  trace.record(trace::RecordType::kCure, trace::CureRecord{fork, runtime, trace::CureMethod::kClamp,
                                                           trace::CureResult::kApplied, stack, 1, 0, 4, 0});
  const auto guard =
      trace.record(trace::RecordType::kHeld,
                   trace::HeldRecord{fork, 0x5550'0000'4100, worker, stack, trace::LockKind::kGuard, 8, {0, 1, 1}});
  const auto custom = trace.record(trace::RecordType::kHeld,
                                   trace::HeldRecord{fork, 0x40, worker, stack, trace::LockKind::kCustom, 1, {}});
  const auto touch = [&](std::uint64_t held) {
    return trace.record(
        trace::RecordType::kTouch,
        trace::TouchRecord{fork, trace::TouchKind::kLock, trace::TouchAction::kNone, held, 0, 0x40, stack, 0, 0, 0, 0});
  };
  touch(guard);
  scene.name(touch(custom), "futex lock");
  const auto python_touch = scene.touch(trace::TouchKind::kLock);
  const char* const text =
      "Stack (most recent call first):\n  File \"/app/a.py\", line 12 in f\n\n"
      "Thread 0x00007f00005dc000 (most recent call first):\n  File \"<string>\", line ??? in g\n  ...\n";
  trace.as(2600).python(trace::PythonMoment::kTouch, text, 2600, python_touch);
  trace.as(test::kParent);
  const auto python = trace.python(trace::PythonMoment::kFork, text, test::kParent);
  trace.record(trace::RecordType::kPythonAtFork, trace::PythonAtForkRecord{fork, python});
  trace.python(trace::PythonMoment::kRequest, text, test::kParent);
  trace.record(trace::RecordType::kPythonSignal, trace::PythonSignalRecord{60, 0});
  trace.record(trace::RecordType::kCudaIpc,
               trace::CudaIpcRecord{7, 0x1000, 64, stack, 1, 2, 0, trace::CudaIpcKind::kExport, 0});
  trace.record(trace::RecordType::kCudaIpc,
               trace::CudaIpcRecord{7, 0x1000, 0, stack, 9, 0, 0, trace::CudaIpcKind::kFree, 0});
  trace.as(2600).record(trace::RecordType::kCudaIpc,
                        trace::CudaIpcRecord{7, 0x2000, 64, stack, 3, 4, 12, trace::CudaIpcKind::kOpen, 0});
  trace.record(trace::RecordType::kCudaIpc,
               trace::CudaIpcRecord{7, 0, 0, stack, 5, 6, 0, trace::CudaIpcKind::kOpen, 208});
  trace.record(trace::RecordType::kCudaIpc,
               trace::CudaIpcRecord{7, 0x2000, 0, stack, 10, 11, 0, trace::CudaIpcKind::kClose, 0});
  trace.record(trace::RecordType::kCudaIpc, trace::CudaIpcRecord{0, 0, 0, 0, 12, 12, 0, trace::CudaIpcKind::kEnd, 0});
  trace.as(test::kParent);
  const auto unflushed = trace.record(trace::RecordType::kUnflushed,
                                      trace::UnflushedRecord{fork, 0x40, 5, 1, 1, 5, 0, {'h', 'e', 'l', 'l', 'o'}});
  trace.record(trace::RecordType::kFlush, trace::FlushRecord{unflushed, 0, stack, trace::FlushKind::kClose, 0});
  trace.as(2600).record(trace::RecordType::kFlush,
                        trace::FlushRecord{unflushed, fork, stack, trace::FlushKind::kAtExit, 0});
  trace::ShareRecord connection{};
  connection.fork = fork;
  connection.kind = trace::ShareKind::kConnection;
  connection.peer_bytes = 16;
  connection.peer[0] = 2;  // AF_INET
  const auto share = trace.record(trace::RecordType::kShare, connection);
  trace::ShareUseRecord use{};
  use.share = share;
  use.fork = fork;
  use.stack = stack;
  use.kind = trace::ShareUseKind::kSent;
  trace.as(2600).record(trace::RecordType::kShareUse, use);
  trace.record(trace::RecordType::kDraw, trace::DrawRecord{fork, stack, 1804289383, trace::Generator::kRandom, 0});
  trace.as(test::kParent);
  trace.record(trace::RecordType::kNote, trace::NoteRecord{trace::NoteCode::kHeldOverflow, 0, 3});
  trace.record(trace::RecordType::kModuleGone, trace::ModuleGoneRecord{0x5550'0000'0000});
  trace.record(trace::RecordType::kHandlers, trace::HandlersRecord{0, 2});
  trace.as(test::kParent);
  const auto libc_call = trace.record(trace::RecordType::kLibcCall,
                                      trace::LibcCallRecord{trace::bit_of(trace::LibcLock::kTimeZone), "tzset"});
  const auto in_flight =
      trace.as(2600).record(trace::RecordType::kInFlight, trace::InFlightRecord{fork, worker, libc_call, stack, 0, 0});
  trace.record(trace::RecordType::kStream, trace::StreamRecord{fork, worker, 0x40, 1, 0});
  trace.record(trace::RecordType::kQuiesced, trace::QuiescedRecord{fork, 5, 2, 1});
  trace.record(trace::RecordType::kTouch,
               trace::TouchRecord{fork, trace::TouchKind::kLibcCall, trace::TouchAction::kNone, in_flight, 0, libc_call,
                                  stack, 0, 0, 0, 0});
  trace::CudaRecord cuda{};
  cuda.fork = fork;
  cuda.init_stack = stack;
  cuda.init_tid = test::kParent;
  cuda.flags = trace::kCudaInitialised;
  trace.record(trace::RecordType::kCuda, cuda);
  const auto function = trace.record(trace::RecordType::kCudaFunction, trace::CudaFunctionRecord{0x40, "cuInit"});
  const auto call = trace.record(trace::RecordType::kTouch,
                                 trace::TouchRecord{fork, trace::TouchKind::kCudaCall, trace::TouchAction::kNone, 0,
                                                    function, 0x40, stack, 0, 0, 0, 0});
  trace.record(trace::RecordType::kTouchEnd, trace::TouchEndRecord{call, 3, 0});
  trace.record(trace::RecordType::kMpi, trace::MpiRecord{fork, 0x40, trace::MpiKind::kUcx, trace::kMpiLost});
  trace.record(trace::RecordType::kTimer, trace::TimerRecord{fork, trace::TimerKind::kPosix, 14, 1, 0});
  trace.as(2600).record(trace::RecordType::kTouch,
                        trace::TouchRecord{fork, trace::TouchKind::kTimerWait, trace::TouchAction::kNone, 0, 0, 0x2000,
                                           stack, 0, 0, 0, 0});
  trace.as(test::kParent);
  {
    const trace::FileLockRecord lock{fork,
                                     stack,
                                     stack,
                                     0,
                                     9,
                                     trace::FileLockKind::kPosix,
                                     trace::FileLockEvent::kForeignUnlock,
                                     3,
                                     test::kParent,
                                     0,
                                     trace::kFileChanged,
                                     5,
                                     0};
    std::vector<std::byte> payload(sizeof lock + lock.path_bytes, std::byte{'p'});
    std::memcpy(payload.data(), &lock, sizeof lock);
    trace.as(2600).append(trace::RecordType::kFileLock, payload);
    trace.as(test::kParent);
  }
  trace.record(trace::RecordType::kVforkCall, trace::VforkCallRecord{stack, 2700, trace::VforkCall::kExit});
  trace.as(test::kParent);
  const auto life = trace.record(trace::RecordType::kThreadLife, trace::ThreadLifeRecord{0, 1, 0, 0, 1, 0});
  const auto other_life = trace.record(trace::RecordType::kThreadLife, trace::ThreadLifeRecord{life, 2, 9, life, 1, 0});
  const auto order = [&](std::uint64_t of, std::uint64_t held, std::uint64_t taken) {
    const trace::LockOrderRecord record{of, worker, 0x40, 0x80, held, taken, stack, stack, 3, {3, 4}, 2, 1, 2, 1, 1, 0};
    const trace::OrderGate gate{held + 7, 0, 0};
    std::vector<std::byte> payload(sizeof record + sizeof gate);
    std::memcpy(payload.data(), &record, sizeof record);
    std::memcpy(payload.data() + sizeof record, &gate, sizeof gate);
    trace.append(trace::RecordType::kLockOrder, payload);
  };
  order(life, 1, 2);
  order(other_life, 2, 1);
  trace.as(2600).record(trace::RecordType::kRacyTouch,
                        trace::RacyTouchRecord{fork, 0x40, stack, worker, stack, 31, 1000, 5, 6, 1, 1, 64, {31}});
  trace.as(test::kParent).record(trace::RecordType::kChildEnd, trace::ChildEndRecord{2600, 11});
  return trace.bytes();
}

std::vector<std::byte> good_handlers() { return test::whole_handler_trace().bytes(); }

void mutate(const std::vector<std::byte>& good) {
  std::mt19937 random(20'240'229);
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  // Interesting values for counts, sizes, references and enumerators.
  const std::uint64_t values[] = {
      0, 1, 2, 16, 0x7fff'ffff, 0xffff'ffff, ~std::uint64_t{0}, 4096, good.size(), good.size() - 16};
  const std::size_t records = good.size() - trace::kHeaderBytes;
  std::size_t accepted = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::byte> bytes = good;
    const std::size_t changes = 1 + below(4);
    for (std::size_t change = 0; change < changes; ++change) {
      // 7 of 8 changes are in the records, because most bytes of the header are text.
      const std::size_t at = below(8) == 0 ? below(256) : trace::kHeaderBytes + below(records);
      if (at >= bytes.size()) continue;
      switch (below(4)) {
        case 0: bytes[at] ^= static_cast<std::byte>(1U << below(8)); break;
        case 1: bytes[at] = static_cast<std::byte>(below(256)); break;
        case 2: {
          const std::uint64_t value = values[below(std::size(values))];
          const std::size_t width = below(2) == 0 ? 4 : 8;
          const std::size_t aligned = at / width * width;
          if (aligned + width <= bytes.size()) std::memcpy(bytes.data() + aligned, &value, width);
          break;
        }
        default: bytes.resize(at); break;
      }
    }
    accepted += test::run_all_stages(std::move(bytes)) > 0 ? 1U : 0U;
  }
  // If the reader refused most files at once, the test would test too little.
  EXPECT_GT(accepted, static_cast<std::size_t>(kRounds) / 2);
}

void cut(const std::vector<std::byte>& good) {
  const std::size_t step = test::step_between_positions(3);
  for (std::size_t size = 0; size <= good.size(); size += size < trace::kHeaderBytes ? 97 : step) {
    const bool accepted = test::run_all_stages({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}) > 0;
    EXPECT_EQ(accepted, size == 0 || size >= trace::kHeaderBytes) << size;
  }
}

TEST(Mutation, NeverBreaksTheReader) { mutate(good_trace()); }
TEST(Mutation, NeverBreaksTheReaderOfHandlers) { mutate(good_handlers()); }
TEST(Mutation, EachPrefixIsRead) { cut(good_trace()); }
TEST(Mutation, EachPrefixOfHandlersIsRead) { cut(good_handlers()); }

}  // namespace
}  // namespace forksight
