// How often a fork happens while another thread holds a lock that the child then needs.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"

namespace forksight::odds {

// Estimates how often forks like the observed ones find the lock taken. The estimate uses two measurements. If they
// contradict each other, the second one decides:
// - The share of the time from the first fork to the last in which other threads held the lock. That share is the
//   probability if the moment of a fork does not depend on what those threads do. The range is wider if there were few
//   holds, and if parts of that time have different shares. It is also wider by a factor of kSlack.
// - How many of the observed forks found the lock taken. The range is the 95 % interval of wilson_interval().
struct Odds {
  Chance range;
  double share = 0;          // the share of the time in which other threads held the lock
  std::uint64_t forks = 0;   // observed forks of a process with other threads
  std::uint64_t taken = 0;   // observed forks that found the lock taken
  bool is_by_forks = false;  // the forks contradict the share, so the range is computed from the forks
  bool is_over = false;      // since the first fork nobody held the lock, and there were enough forks
};

inline constexpr double kSlack = 1.5;

// The odds for each lock of a process. Each is computed from the touches by all children of the process.
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

// Returns the confidence interval (Wilson's interval, 95 %) of a probability: an event was observed in `taken` of
// `tries` trials.
Chance wilson_interval(std::uint64_t taken, std::uint64_t tries);

}  // namespace forksight::odds
