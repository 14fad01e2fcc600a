// Collects the findings of all rules, and limits the memory that they take. A stranger may have made a trace with far
// more hangs than a machine has processes.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "diagnose/finding.hpp"

namespace forksight {

// A rule has reached the limit. diagnose() catches this, says so, and goes on with the next rule.
struct TooManyFindings {};

class FindingList {
 public:
  // Called before each rule. A rule may take half of the memory that the rules before it have left.
  void begin_rule();

  // Throws TooManyFindings if the rule has taken all that it may take. Then the finding is not added.
  void push_back(Finding finding);

  std::size_t size() const { return all_.size(); }
  Finding& operator[](std::size_t index) { return all_[index]; }
  Finding& back() { return all_.back(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  operator const std::vector<Finding>&() const { return all_; }

  std::vector<Finding> take() { return std::move(all_); }

 private:
  std::vector<Finding> all_;
  std::size_t bytes_ = 0;  // what the findings take, about
  std::size_t most_ = 0;   // what they may take before the rule ends
};

}  // namespace forksight
