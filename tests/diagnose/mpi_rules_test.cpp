// Tests the rule about calls of MPI and UCX after a fork. Each test makes a trace, and checks the findings about it.
#include <gtest/gtest.h>

#include <cstring>

#include "diagnose/diagnose.hpp"
#include "forksight/trace/cuda.hpp"
#include "forksight/trace/mpi.hpp"
#include "support/scenes.hpp"
#include "support/trace_builder.hpp"

namespace forksight {
namespace {

using test::kChild;
using test::kParent;
using test::read_model;

constexpr std::uint64_t kBias = 0x7f10'0000'0000;
constexpr std::uint32_t kAborted = 6;  // the status that wait() gives for a process that SIGABRT ended

class MpiTrace {
 public:
  explicit MpiTrace(trace::MpiKind kind = trace::MpiKind::kMpi, std::uint32_t flags = 0) {
    trace.module("/usr/lib/libmpi.so.40", kBias, kBias, kBias + 0x50000);
    trace::ForkRecord fixed{};
    fixed.ordinal = 1;
    fixed.forking_thread = trace.thread(kParent, "app", 0, 0, 0, trace::kThreadMain);
    fixed.tasks = 1;
    fork = trace.fork(fixed, {}, {});
    trace.record(trace::RecordType::kMpi, trace::MpiRecord{fork, kBias, kind, flags});
    trace.record(trace::RecordType::kForked, trace::ForkedRecord{fork, kChild, 0, 100'000});
    trace.as(kChild);
  }
  std::uint64_t call(const char* function) {
    trace::CudaFunctionRecord named{kBias + 0x2000, {}};
    std::strncpy(named.name, function, sizeof named.name - 1);
    const std::uint64_t name = trace.record(trace::RecordType::kCudaFunction, named);
    return trace.record(trace::RecordType::kTouch,
                        trace::TouchRecord{fork, trace::TouchKind::kMpiCall, trace::TouchAction::kNone, 0, name,
                                           named.address, 0, 0, 0, 0, 0});
  }
  void answer(std::uint64_t touch, std::int32_t result) {
    trace.record(trace::RecordType::kTouchEnd, trace::TouchEndRecord{touch, result, 0});
  }

  test::TraceBuilder trace;
  std::uint64_t fork = 0;
};

model::Model answered(const char* function, std::int32_t result, trace::MpiKind kind = trace::MpiKind::kMpi) {
  MpiTrace scene(kind);
  scene.answer(scene.call(function), result);
  return read_model(scene.trace);
}

TEST(MpiAfterFork, EachForkKeepsOneRecordOfALibrary) {
  MpiTrace scene(trace::MpiKind::kUcx, trace::kMpiLost);
  // None of these three records is kept. The first repeats a record of the same fork and kind. The second belongs to no
  // fork. The third has an unknown kind.
  scene.trace.record(trace::RecordType::kMpi, trace::MpiRecord{scene.fork, kBias, trace::MpiKind::kUcx, 0});
  scene.trace.record(trace::RecordType::kMpi, trace::MpiRecord{0, kBias, trace::MpiKind::kMpi, 0});
  scene.trace.record(trace::RecordType::kMpi, trace::MpiRecord{scene.fork, kBias, static_cast<trace::MpiKind>(77), 0});
  const model::Model model = read_model(scene.trace);
  ASSERT_EQ(model.forks[0].mpi.size(), 1U);
  EXPECT_EQ(model.forks[0].mpi[0].kind, model::MpiKind::kUcx);
  EXPECT_EQ(model.forks[0].mpi[0].library, "/usr/lib/libmpi.so.40");
  EXPECT_TRUE(model.forks[0].mpi[0].was_lost);
}

TEST(MpiAfterFork, IsPossibleIfTheCallSucceeded) {
  model::Model model = answered("MPI_Send", 0);
  model.touches[0].stack = test::make_stack({"work app.c:31"});
  model.forks[0].stack = test::make_stack({"main app.c:20"});
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].rule, "mpi-after-fork");
  EXPECT_EQ(findings[0].harm, Certainty::kPossible);
  EXPECT_EQ(findings[0].outcome, Outcome::kCorruption);
  EXPECT_EQ(findings[0].culprit.name, "MPI");
  EXPECT_EQ(findings[0].culprit.library, "/usr/lib/libmpi.so.40");
  EXPECT_EQ(findings[0].summary,
            "child 2000 called MPI_Send at app.c:31: MPI was initialised before fork() at app.c:20");
}

TEST(MpiAfterFork, IsLikelyIfTheCallFailed) {
  const auto refused = diagnose(answered("MPI_Send", 16));
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused[0].harm, Certainty::kLikely);
  EXPECT_EQ(refused[0].outcome, Outcome::kError);
  MpiTrace scene;
  scene.call("MPI_Barrier");
  model::Model model = read_model(scene.trace);
  EXPECT_TRUE(diagnose(model).empty());  // the call has not returned
  model.processes[1].exit_status = kAborted;
  const auto ended = diagnose(model);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].harm, Certainty::kLikely);
  EXPECT_NE(ended[0].summary.find("ended inside of MPI_Barrier"), std::string::npos) << ended[0].summary;
}

TEST(MpiAfterFork, IsCertainIfTheCallHangs) {
  MpiTrace scene;
  scene.answer(scene.call("MPI_Send"), 0);
  scene.call("MPI_Barrier");
  model::Model model = read_model(scene.trace);
  model.processes[1].liveness = model::Liveness::kDead;
  model.processes[1].stuck_for_ms = 1400;
  model.processes[1].waits = {test::futex_wait(kChild)};
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_EQ(findings[0].outcome, Outcome::kHang);
  EXPECT_NE(findings[0].summary.find("hangs in MPI_Barrier"), std::string::npos) << findings[0].summary;
}

// MPI spins while it waits for a message, so spinning is not a fault. A victim waits for another process that hangs, so
// its hang has another cause.
TEST(MpiAfterFork, IsSilentIfTheCallTakesLong) {
  for (const auto liveness : {model::Liveness::kSpinning, model::Liveness::kVictim}) {
    MpiTrace scene;
    scene.call("MPI_Recv");
    model::Model model = read_model(scene.trace);
    model.processes[1].liveness = liveness;
    model.processes[1].stuck_for_ms = 60'000;
    EXPECT_TRUE(diagnose(model).empty());
  }
}

TEST(MpiAfterFork, NeedsACallOfTheLibraryThatWasInitialisedBeforeTheFork) {
  EXPECT_TRUE(diagnose(answered("ucp_worker_create", 0)).empty());
  EXPECT_TRUE(diagnose(answered("MPI_Send", 0, trace::MpiKind::kUcx)).empty());
  EXPECT_EQ(diagnose(answered("ucp_worker_create", 0, trace::MpiKind::kUcx)).size(), 1U);
}

}  // namespace
}  // namespace forksight
