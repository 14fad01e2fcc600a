// A model that a child process reads, for a command that goes on afterwards: `run` and `ci`.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "files/reader.hpp"
#include "model/model.hpp"
#include "result.hpp"

namespace forksight::guard {

using ReadModel = std::function<Result<model::Model>(const files::Reader&)>;

struct ReadOptions {
  std::chrono::steady_clock::duration limit = std::chrono::minutes(5);
  std::size_t most_bytes = std::size_t{512} << 20U;  // of the answer
  // The work needs to be done by an ancestor of the processes that it examines. It is done in this process if the
  // kernel lets only an ancestor examine them, and this process has no rights that their owner lacks.
  bool needs_ancestor = false;
};

struct ModelRead {
  Result<model::Model> model;
  // The child has crashed, or did not end. Then the error of `model` says so.
  bool has_failed = false;
};

ModelRead read_model(const ReadModel& work, const ReadOptions& options);

}  // namespace forksight::guard
