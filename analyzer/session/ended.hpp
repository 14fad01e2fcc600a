// Some processes share CUDA device memory by handle. RunEnded notes when such a process ends. A rule of the diagnosis
// compares the time of the end with the calls of other processes. The traces do not contain this time, because a killed
// process cannot record its own end.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "collect/run_log.hpp"
#include "model/model.hpp"

namespace forksight {

class RunEnded {
 public:
  // Follows the processes of `model` that share device memory by handle.
  void follow(const model::Model& model);
  // If a followed process has ended since the previous call, notes the current time as the time of its end.
  void look();
  const std::vector<collect::LoggedEnd>& ends() const { return ends_; }

 private:
  std::map<std::int32_t, std::uint64_t> living_;  // pid and start time
  std::vector<collect::LoggedEnd> ends_;
};

}  // namespace forksight
