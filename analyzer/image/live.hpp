// Reads a live process: its files in /proc and its memory. The process can notice only what stop.hpp describes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "image/image.hpp"
#include "proc/thread_sample.hpp"
#include "result.hpp"

namespace forksight::image {

struct LiveOptions {
  bool stop = true;  // stop threads in order to read all their registers: see stop.hpp
  // Returns true for each thread that is to be stopped. Empty: all threads that may be stopped are stopped.
  std::function<bool(const Thread&)> stop_only = {};
  // All threads of the process, if none of them has run since they were sampled. nullopt: they are sampled now.
  std::optional<proc::SampledThreads> threads = {};
};

// Reads the process. An error is one sentence: there is no such process, it has ended, forksight may not read it (with
// advice), or its program is not x86-64 code.
Result<Image> open_live(std::int32_t pid, const LiveOptions& options = {});

}  // namespace forksight::image
