// A live process as evidence. Reads /proc and the process' memory; all that it may notice of it is said in stop.hpp.
#pragma once

#include <cstdint>
#include <functional>

#include "image/image.hpp"
#include "result.hpp"

namespace forksight::image {

struct LiveOptions {
  bool stop = true;                              // all registers, where that is possible: see stop.hpp
  std::function<bool(const Thread&)> stop_only;  // empty: every thread that may be stopped
};

// An error is one sentence: no such process, one that has ended, not ours to look at (and what would help), not x86-64.
Result<Image> open_live(std::int32_t pid, const LiveOptions& options = {});

}  // namespace forksight::image
