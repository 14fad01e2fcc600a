#include "diagnose/rule_clock.hpp"

#include <algorithm>
#include <ctime>

namespace forksight {
namespace {

constexpr std::size_t kCallsForOneLook = 16;
constexpr int kLeastPart = 50;  // a rule is left out if less than this part of the time is left

// The rules run in one thread. Other threads of the process must not use up their time.
std::chrono::nanoseconds processor_time() {
  timespec now{};
  if (::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) return {};
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

RuleClock::RuleClock(std::chrono::nanoseconds longest)
    : longest_(longest), end_(processor_time() + longest), rule_end_(end_) {}

bool RuleClock::begin_rule() {
  const std::chrono::nanoseconds now = processor_time();
  const std::chrono::nanoseconds left = end_ - std::min(now, end_);
  rule_end_ = now + left / 2;
  return left > longest_ / kLeastPart;
}

bool RuleClock::is_used_up() const { return processor_time() > rule_end_; }

void RuleClock::check() {
  if (++calls_ % kCallsForOneLook == 0 && is_used_up()) throw RuleTookTooLong();
}

}  // namespace forksight
