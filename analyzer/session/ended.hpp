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
  // Chooses the processes to look at from now on.
  void follow(const model::Model& model);
  // Looks at these processes.
  void look();
  const std::vector<collect::LoggedEnd>& ends() const { return ends_; }

 private:
  std::map<std::int32_t, std::uint64_t> living_;  // pid and start time
  std::vector<collect::LoggedEnd> ends_;
};

}  // namespace forksight
