#include <gtest/gtest.h>

#include "diagnose/diagnose.hpp"
#include "support/cuda_scene.hpp"

namespace forksight {
namespace {

using test::CudaScene;
using test::CudaTrace;
using test::read_model;

constexpr int kExitedWithOne = 1 << 8;

model::Model called(const char* function, int result, const CudaScene& scene = {}) {
  CudaTrace trace(scene);
  trace.answer(trace.call(function), result);
  return read_model(trace.trace);
}

TEST(CudaUsedAfterFork, IsCertainByTheErrorCodeOfTheDriver) {
  model::Model model = called("cuMemAlloc_v2", 3);
  model.touches[0].stack = test::make_stack({"cuMemAlloc_v2 libcuda.so.1", "work app.c:31"});
  model.forks[0].cuda->init_stack = test::make_stack({"cudaGetDeviceCount libcudart.so.12", "probe app.c:12"});
  model.forks[0].stack = test::make_stack({"main app.c:20"});
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  const Finding& finding = findings[0];
  EXPECT_EQ(finding.rule, "cuda-used-after-fork");
  EXPECT_EQ(finding.harm, Certainty::kProven);
  EXPECT_EQ(finding.outcome, Outcome::kError);
  EXPECT_EQ(finding.summary,
            "child 2000 called cuMemAlloc at app.c:31 and got CUDA_ERROR_NOT_INITIALIZED (3): cuInit was called at "
            "app.c:12 before fork() at app.c:20");
  EXPECT_EQ(finding.culprit.kind, CulpritKind::kDevice);
  EXPECT_EQ(finding.culprit.name, "CUDA driver 12.2");
  EXPECT_EQ(finding.culprit.library, "/usr/lib/libcuda.so.1");
  EXPECT_EQ(finding.culprit.holder->tid, test::kParent);
  EXPECT_EQ(finding.culprit.stack.frames.size(), 2U);
  ASSERT_FALSE(finding.fixes.empty());
  EXPECT_TRUE(finding.fixes[0].verified);
}

TEST(CudaUsedAfterFork, GivesOneFindingForEachProcess) {
  CudaTrace trace({});
  trace.answer(trace.call("cuCtxGetCurrent"), 3);
  trace.answer(trace.call("cuInit"), 3);
  trace.answer(trace.call("cuDeviceGetCount"), 3);
  const auto findings = diagnose(read_model(trace.trace));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("called cuInit and got"), std::string::npos)
      << "cuCtxGetCurrent is only a query, so cuInit is the first call to report";
  EXPECT_NE(findings[0].chain[1].find("2 other functions"), std::string::npos) << findings[0].chain[1];
}

TEST(CudaUsedAfterFork, IsLikelyByAnotherErrorCode) {
  const auto findings = diagnose(called("cuMemcpyHtoD_v2", 201));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].harm, Certainty::kLikely);
  EXPECT_NE(findings[0].summary.find("CUDA_ERROR_INVALID_CONTEXT (201)"), std::string::npos);
  EXPECT_NE(diagnose(called("cuInit", 12345))[0].summary.find("got error 12345"), std::string::npos);
}

TEST(CudaUsedAfterFork, IsSilentWhereNothingIsWrong) {
  EXPECT_TRUE(diagnose(read_model(CudaTrace({}).trace)).empty()) << "no call in the child";
  EXPECT_TRUE(diagnose(called("cuMemAlloc_v2", 0)).empty()) << "the call succeeded";
  EXPECT_TRUE(diagnose(called("cuInit", 3, {.flags = trace::kCudaAsked})).empty()) << "not initialised at the fork";
  CudaTrace running({});
  running.call("cuMemAlloc_v2");
  EXPECT_TRUE(diagnose(read_model(running.trace)).empty()) << "a call that has not returned yet may still return";
}

TEST(CudaUsedAfterFork, ReportsQueriesOnlyOfAChildThatFailed) {
  model::Model model = called("cuCtxGetCurrent", 3);
  EXPECT_TRUE(diagnose(model).empty());
  model.processes[model.touches[0].process].exit_status = 0;
  EXPECT_TRUE(diagnose(model).empty()) << "the call failed in an exit handler, but the child exited with 0";
  model.processes[model.touches[0].process].exit_status = kExitedWithOne;
  ASSERT_EQ(diagnose(model).size(), 1U);
  EXPECT_EQ(diagnose(model)[0].harm, Certainty::kLikely);
}

TEST(CudaUsedAfterFork, IsAHangIfTheChildHangsInTheDriver) {
  CudaTrace trace({});
  trace.call("cuMemAlloc_v2");
  model::Model model = read_model(trace.trace);
  model::Process& child = model.processes[model.touches[0].process];
  child.liveness = model::Liveness::kDead;
  child.stuck_for_ms = 1400;
  child.waits = {test::futex_wait(test::kChild)};
  const auto findings = diagnose(model);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].outcome, Outcome::kHang);
  EXPECT_EQ(findings[0].harm, Certainty::kProven);
  EXPECT_NE(findings[0].summary.find("child 2000 hangs in cuMemAlloc"), std::string::npos) << findings[0].summary;
}

TEST(CudaUsedAfterFork, NamesNoThreadIfTheInitialisationWasNotSeen) {
  const auto findings = diagnose(called("cuInit", 3, {.is_init_seen = false}));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("CUDA was initialised before fork()"), std::string::npos) << findings[0].summary;
  EXPECT_FALSE(findings[0].culprit.holder);
}

}  // namespace
}  // namespace forksight
