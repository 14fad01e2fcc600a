#include "record/function_touch.hpp"

#include <string.h>

#include "forksight/trace/cuda.hpp"
#include "record/slots.hpp"
#include "record/writer.hpp"

#include "guest/house_rules.hpp"

namespace forksight {

namespace {
constexpr std::size_t kStackBytes = 16U << 10U;
}

std::uint64_t begin_function_touch(trace::TouchKind kind, std::uint64_t fork, const char* name, std::uint64_t function,
                                   const Site& site) {
  trace::CudaFunctionRecord named{function, {}};
  memcpy(named.name, name, strnlen(name, sizeof named.name - 1));
  const std::uint64_t named_by = append(trace::RecordType::kCudaFunction, named, Importance::kFinding);
  const std::uint64_t stack = append_stack(site, own_slot(), kStackBytes, false, Importance::kFinding);
  return append(trace::RecordType::kTouch,
                trace::TouchRecord{fork, kind, trace::TouchAction::kNone, 0, named_by, function, stack, 0, 0, 0, 0},
                Importance::kFinding);
}

void end_function_touch(std::uint64_t touch, int result) {
  if (touch == 0) return;
  append(trace::RecordType::kTouchEnd, trace::TouchEndRecord{touch, result, 0}, Importance::kFinding);
}

}  // namespace forksight
