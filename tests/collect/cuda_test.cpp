#include <gtest/gtest.h>

#include "support/cuda_scene.hpp"

namespace forksight::collect {
namespace {

using test::CudaTrace;
using test::read_model;

TEST(CudaRecords, AreReadIntoTheirFork) {
  CudaTrace trace({.active_contexts = 0x8000'0000'0000'0005});
  trace.answer(trace.call("cuMemAlloc_v2"), 3);
  const model::Model model = read_model(trace.trace);
  ASSERT_EQ(model.forks.size(), 1U);
  ASSERT_TRUE(model.forks[0].cuda.has_value());
  const model::Cuda& cuda = *model.forks[0].cuda;
  EXPECT_EQ(cuda.library, "/usr/lib/libcuda.so.1");
  EXPECT_TRUE(cuda.is_initialised);
  EXPECT_TRUE(cuda.asked);
  EXPECT_FALSE(cuda.was_lost);
  EXPECT_EQ(cuda.version, 12020);
  EXPECT_EQ(cuda.devices, 2);
  EXPECT_EQ(cuda.active_contexts, (std::vector<int>{0, 2, 63}));
  EXPECT_EQ(cuda.init_way, model::CudaWay::kDlsym);
  EXPECT_EQ(cuda.init_tid, test::kParent);
  EXPECT_EQ(cuda.init_thread, "app");
  ASSERT_EQ(model.touches.size(), 1U);
  EXPECT_EQ(model.touches[0].kind, model::TouchKind::kCudaCall);
  EXPECT_EQ(model.touches[0].function, "cuMemAlloc_v2");
  EXPECT_EQ(model.touches[0].result, 3);
  EXPECT_TRUE(model.limits.empty());
}

TEST(CudaRecords, AreLeftOutIfTheirReferenceIsMissing) {
  CudaTrace trace({});
  trace.trace.as(trace.child);
  // This touch has no record of the called function, so it is left out.
  trace.trace.record(trace::RecordType::kTouch,
                     trace::TouchRecord{trace.fork, trace::TouchKind::kCudaCall, trace::TouchAction::kNone, 0,
                                        trace.fork, 0, 0, 0, 0, 0, 0});
  // This record of the driver belongs to no fork, so it is left out.
  trace.trace.record(trace::RecordType::kCuda, trace::CudaRecord{});
  // The name of this function has no terminating NUL. The touch that refers to it is kept.
  trace::CudaFunctionRecord endless{1, {}};
  std::memset(endless.name, 'x', sizeof endless.name);
  const auto name = trace.trace.record(trace::RecordType::kCudaFunction, endless);
  trace.trace.record(trace::RecordType::kTouch,
                     trace::TouchRecord{trace.fork, trace::TouchKind::kCudaCall, trace::TouchAction::kNone, 0, name, 1,
                                        0, 0, 0, 0, 0});
  const model::Model model = read_model(trace.trace);
  ASSERT_EQ(model.touches.size(), 1U);
  EXPECT_EQ(model.touches[0].function, std::string(56, 'x'));
}

}  // namespace
}  // namespace forksight::collect
