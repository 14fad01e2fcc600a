// Reads a model in a child process. The commands `run` and `ci` use this, because they continue after the reading.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "files/budgets.hpp"
#include "files/reader.hpp"
#include "model/model.hpp"
#include "result.hpp"

namespace forksight::guard {

using ReadModel = std::function<Result<model::Model>(const files::Reader&)>;

struct ReadOptions {
  std::chrono::steady_clock::duration limit = files::kLongestReading;
  std::size_t most_bytes = std::size_t{512} << 20U;  // the most bytes that the answer may have
  // The work examines descendants of this process. If the kernel lets only an ancestor examine the descendants, a child
  // cannot do the work, and this process does the work itself. This happens only if this process lacks CAP_SYS_PTRACE.
  // So this process has no rights that the owner of the descendants lacks.
  bool needs_ancestor = false;
};

struct ModelRead {
  Result<model::Model> model;
  // The child crashed, did not end, or gave no valid answer. The error of `model` says which.
  bool has_failed = false;
};

ModelRead read_model(const ReadModel& work, const ReadOptions& options);

}  // namespace forksight::guard
