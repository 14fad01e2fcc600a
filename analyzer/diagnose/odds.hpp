// How often a fork happens while another thread holds a lock that the child then needs.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"

namespace forksight::odds {

// An estimate for all forks like those that were seen. Two things are known, and the second outranks the first:
// - How long other threads held the lock during the time in which forks happen. That share is the probability if the
//   moment of a fork does not depend on what those threads do. The range allows for few holds, for parts of that time
//   that differ, and for an extra factor of kSlack.
// - How many of the observed forks found the lock taken. If the true probability were at an end of this range, 95 % of
//   programs would have shown less, or more.
struct Odds {
  Chance range;
  double share = 0;          // of the time in which forks happen
  std::uint64_t forks = 0;   // observed forks, with other threads
  std::uint64_t taken = 0;   // observed forks that found the lock taken
  bool is_by_forks = false;  // the forks contradict the share, so the range comes from the forks
  bool is_over = false;      // nobody held the lock any more when the forks began, and there were enough forks
};

inline constexpr double kSlack = 1.5;

// For each lock of a process, the touches of all its children.
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

// The range of probabilities for which `taken` of `tries` is no surprise (Wilson, 95 %).
Chance wilson_interval(std::uint64_t taken, std::uint64_t tries);

}  // namespace forksight::odds
