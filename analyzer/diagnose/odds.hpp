// How often a fork finds a lock taken that a child needs.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "diagnose/finding.hpp"
#include "model/model.hpp"

namespace forksight::odds {

// Of all forks like those that were seen. Two things are known, and the second outranks the first:
// - For how long others had the lock in the time in which forks happen: that is the chance if the moment of a fork does
//   not depend on what those threads do. The range allows for few holds, for parts of that time that differ, and for a
//   factor of kSlack besides.
// - How many of the forks that were seen found it taken: 95 % of programs with the chance at an end of this range would
//   have shown less, or more.
struct Odds {
  Chance range;
  double share = 0;          // of the time in which forks happen
  std::uint64_t forks = 0;   // that were seen, with other threads
  std::uint64_t taken = 0;   // of them, that found it taken
  bool is_by_forks = false;  // they contradict the share: the range is theirs
  bool is_over = false;      // nobody had it any more when the forks began, and there were enough of them
};

inline constexpr double kSlack = 1.5;

// For each lock of a process the touches of all its children together.
class Table {
 public:
  explicit Table(const model::Model& model);
  const Odds& of(const model::RacyTouch& touch) const;

 private:
  using Key = std::pair<model::ProcessId, std::uint64_t>;  // who forked, address of the lock

  Key key_of(const model::RacyTouch& touch) const;

  const model::Model& model_;
  std::map<Key, Odds> odds_;
};

// The range of chances of which it is no surprise that `taken` of `tries` came out (Wilson, 95 %).
Chance wilson(std::uint64_t taken, std::uint64_t tries);

}  // namespace forksight::odds
