// A parent that has initialised CUDA, or has only loaded the CUDA driver, and a child that calls the driver.
#pragma once

#include <cstdint>

#include "forksight/trace/cuda.hpp"
#include "forksight/trace/format.hpp"
#include "support/scenes.hpp"
#include "support/trace_builder.hpp"

namespace forksight::test {

struct CudaScene {
  std::uint32_t flags = trace::kCudaInitialised | trace::kCudaAsked;
  bool is_init_seen = true;
  std::uint64_t active_contexts = 1;
};

class CudaTrace {
 public:
  explicit CudaTrace(const CudaScene& scene, std::int32_t child = kChild);

  std::uint64_t call(const char* function);
  void answer(std::uint64_t touch, std::int32_t result);

  TraceBuilder trace;
  std::int32_t child;
  std::uint64_t fork = 0;
};

}  // namespace forksight::test
