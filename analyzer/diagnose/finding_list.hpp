// Collects the findings of all rules, and limits the memory that they take. A stranger may have made a trace with far
// more hangs than a machine has processes.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "diagnose/finding.hpp"
#include "diagnose/rule_clock.hpp"

namespace forksight {

// A rule has reached the limit. diagnose() catches this, says so, and goes on with the next rule.
struct TooManyFindings {};

// A finding that equals an earlier one keeps only what rules may ask for: rule, certainties, outcome, processes,
// thread, victims, the kind and address of the culprit, and the pids of the fork. Its texts and stacks are those of the
// earlier finding. So thousands of equal hangs take little memory.
class FindingList {
 public:
  // `clock`: null if the rules may take any time.
  explicit FindingList(const model::Model& model, RuleClock* clock = nullptr) : model_(model), clock_(clock) {}

  // Called before each rule. A rule may take half of the memory that the rules before it have left.
  void begin_rule();

  // Throws TooManyFindings if the rule has taken all memory that it may take, and RuleTookTooLong if it has used up its
  // time. Then the finding is not added.
  void push_back(Finding finding);

  std::size_t size() const { return all_.size(); }
  Finding& operator[](std::size_t index) { return all_[index]; }
  Finding& back() { return all_.back(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  operator const std::vector<Finding>&() const { return all_; }

  // Returns how much memory the findings may still take.
  std::size_t bytes_left() const;

  // Returns the findings in the order in which they were added. Each finding that equals an earlier one is merged into
  // that one.
  std::vector<Finding> take_merged();

 private:
  // fingerprint, outcome, harm, cause, Finding::may_be_intended, and whether one of the processes has may_be_timed_out
  using Key = std::tuple<std::string, Outcome, Certainty, Certainty, bool, bool>;
  Key key_of(const Finding& finding) const;

  const model::Model& model_;
  RuleClock* clock_;
  std::vector<Finding> all_;
  std::vector<std::optional<std::size_t>> equal_to_;  // by finding: the index of the earlier finding that it equals
  std::map<Key, std::size_t> known_;
  std::size_t bytes_ = 0;  // what the findings take, about
  std::size_t most_ = 0;   // what they may take before the rule ends
};

// Adds the processes, victims and count of `more` to `finding`, which equals it.
void merge(Finding& finding, const Finding& more);

}  // namespace forksight
