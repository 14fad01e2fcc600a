// A live process as evidence. Reads /proc and the process's memory. stop.hpp describes everything that the process may
// notice of it.
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

// An error is one sentence: no such process, it has ended, forksight may not look at it (and what would help), or it is
// not x86-64.
Result<Image> open_live(std::int32_t pid, const LiveOptions& options = {});

}  // namespace forksight::image
