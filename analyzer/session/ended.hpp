// When processes that share device memory by handle ended: the order of that and of what the others did is what a rule
// asks for, and who is killed cannot say it itself.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "collect/run_log.hpp"
#include "model/model.hpp"

namespace forksight {

class RunEnded {
 public:
  // Who is to be looked at from now on.
  void follow(const model::Model& model);
  // Looks at them.
  void look();
  const std::vector<collect::LoggedEnd>& ends() const { return ends_; }

 private:
  std::map<std::int32_t, std::uint64_t> living_;  // pid and start
  std::vector<collect::LoggedEnd> ends_;
};

}  // namespace forksight
