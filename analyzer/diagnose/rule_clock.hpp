// Limits the processor time of the rules. A stranger may have made a trace or a process with which a rule takes hours.
#pragma once

#include <chrono>
#include <cstddef>

#include "files/budgets.hpp"

namespace forksight {

// A rule has used up its time. diagnose() catches this, says so, and goes on with the next rule.
struct RuleTookTooLong {};

class RuleClock {
 public:
  // Starts the clock.
  explicit RuleClock(std::chrono::nanoseconds longest = files::kLongestRules);

  // Called before each rule, and before the searches that all rules share. A rule may take half of the time that is
  // left. Returns false if so little is left that the rule must be left out.
  bool begin_rule();
  // Called by all that a rule uses. Throws RuleTookTooLong if the rule has used up its time. Looks at the clock only at
  // some of the calls, because a look costs more than most of the work between two calls.
  void check();
  // True if the rule has used up its time.
  bool is_used_up() const;

 private:
  std::chrono::nanoseconds longest_;
  std::chrono::nanoseconds end_;       // when all time is used up
  std::chrono::nanoseconds rule_end_;  // when the time of this rule is used up
  std::size_t calls_ = 0;
};

}  // namespace forksight
