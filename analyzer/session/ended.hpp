// Some processes share device memory by handle. Notes the times at which these processes end. A rule compares the times
// with the calls of other processes. The traces do not contain the times, because a killed process cannot record its
// own end.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "collect/run_log.hpp"
#include "model/model.hpp"

namespace forksight {

class RunEnded {
 public:
  // From now on, look() also looks at the processes of `model` that share device memory by handle.
  void follow(const model::Model& model);
  // For each of these processes that has ended since the previous call, notes the current time as the time of its end.
  void look();
  const std::vector<collect::LoggedEnd>& ends() const { return ends_; }

 private:
  std::map<std::int32_t, std::uint64_t> living_;  // pid and start time
  std::vector<collect::LoggedEnd> ends_;
};

}  // namespace forksight
