// Notes the times at which processes end that share device memory by handle. A rule compares these times with the calls
// of other processes. The traces do not contain the times, because a killed process cannot record its own end.
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
  // Notes the time for each of these processes that has ended since the previous call.
  void look();
  const std::vector<collect::LoggedEnd>& ends() const { return ends_; }

 private:
  std::map<std::int32_t, std::uint64_t> living_;  // pid and start time
  std::vector<collect::LoggedEnd> ends_;
};

}  // namespace forksight
