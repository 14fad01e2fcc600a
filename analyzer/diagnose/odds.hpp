// Estimates how often a fork happens while another thread holds a lock that the child then needs.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"

namespace forksight::odds {

// How often forks like the observed forks find the lock taken. forksight estimates this by two measurements. If the two
// contradict each other, the second one decides:
// - The first measurement is the share of the time in which other threads held the lock. It covers the time from the
//   first fork to the last. The share is the probability if the moment of a fork does not depend on what those threads
//   do. The range becomes wider if there were few holds, or if parts of the time have different shares. In any case the
//   range is widened by the factor kSlack.
// - The second measurement is the number of observed forks that found the lock taken. The range is the 95 % interval of
//   wilson_interval().
struct Odds {
  Chance range;
  double share = 0;          // the share of the time in which other threads held the lock
  std::uint64_t forks = 0;   // observed forks of a process with other threads
  std::uint64_t taken = 0;   // observed forks that found the lock taken
  bool is_by_forks = false;  // the forks contradict the share, so the range is computed from the forks
  bool is_over = false;      // nobody held the lock since the first fork, and there were enough forks to rely on this
};

inline constexpr double kSlack = 1.5;

// The odds of each lock of each forking process. They are computed from the touches of all children of that process.
class Table {
 public:
  explicit Table(const model::Model& model);
  const Odds& of(const model::RacyTouch& touch) const;

 private:
  using Key = std::pair<model::ProcessId, std::uint64_t>;  // the forking process, and the address of the lock

  Key key_of(const model::RacyTouch& touch) const;

  const model::Model& model_;
  std::map<Key, Odds> odds_;
};

// Returns the confidence interval of a probability (Wilson's interval, 95 %). The event was observed in `taken` of
// `tries` trials.
Chance wilson_interval(std::uint64_t taken, std::uint64_t tries);

}  // namespace forksight::odds
