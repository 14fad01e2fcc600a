#include "diagnose/odds.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace forksight::odds {

namespace {

using model::RacyTouch;
using Touches = std::vector<const RacyTouch*>;

// If forksight sees no hold of the lock since the first fork, the lock is perhaps no longer held at forks. forksight
// assumes this only under two conditions. First, it has seen at least kEnoughForks forks. Second, going by the time
// before the first fork, it would have expected at least kEnoughHolds holds since then.
constexpr std::size_t kEnoughForks = 8;
constexpr double kEnoughHolds = 5;
constexpr std::size_t kMostIndependent = 16;
constexpr std::size_t kAll = static_cast<std::size_t>(-1);
constexpr double kRounding = 1e-9;

// The time for which the lock was held, and the time over which this was measured. Both times are fractions of the
// window, which lasts from the moment when the process made its second thread until the fork.
struct Part {
  double held = 0;
  double time = 0;

  double share() const { return time > 0 ? std::min(1.0, held / time) : 0; }
};

// Adds up the slices at the end of the window: those that begin at `from` or later, but at most the last `most`. If
// there are no slices, returns the whole window.
Part last_slices(const RacyTouch& touch, double from, std::size_t most) {
  if (touch.slices.empty()) return {touch.share, 1};
  Part part;
  double begin = 1;
  for (std::size_t i = touch.slices.size(); i-- > 0 && most-- > 0;) {
    begin -= touch.slices[i].time;
    if (begin < from - kRounding) break;
    part.held += touch.slices[i].held;
    part.time += touch.slices[i].time;
  }
  return part;
}

// Adds up the last two slices of the window, which are nearest to the fork. The last slice alone may be very short.
Part around_fork(const RacyTouch& touch, double from = 0) { return last_slices(touch, from, 2); }

double window_ratio(const RacyTouch& fork, const RacyTouch& in) {
  return in.window_ns > 0 ? static_cast<double>(fork.window_ns) / static_cast<double>(in.window_ns) : 0;
}

// Returns, for each fork except the first, how much of the time just before the fork the lock was held. If this is not
// known for any of these forks, returns it for the last fork only.
std::vector<double> shares_at_forks(const Touches& touches) {
  std::vector<double> shares;
  for (const RacyTouch* touch : touches) {
    const Part part = around_fork(*touch, window_ratio(*touches.front(), *touch));
    if (part.time > 0) shares.push_back(part.share());
  }
  if (shares.empty()) shares.push_back(around_fork(*touches.back()).share());
  return shares;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double error_of_mean(const std::vector<double>& values, double mean) {
  if (values.size() < 2) return 0;
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  const double variance = sum / static_cast<double>(values.size() - 1);
  return std::sqrt(variance / static_cast<double>(std::min(values.size(), kMostIndependent)));
}

// Multiplies the odds p / (1 - p) of a probability p by `by`, and returns the new probability. For a small p the result
// is close to p times `by`. The result is never above 1.
double stretch(double chance, double by) { return chance * by / (1 - chance + chance * by); }

// Computes the odds from the times for which the lock was held. `touches` must be in the order of their forks.
void judge_time(const Touches& touches, Odds& odds) {
  const RacyTouch& last = *touches.back();
  const std::vector<double> shares = shares_at_forks(touches);
  const double mean = mean_of(shares);
  // The time that counts is the time from the first fork to the last fork. If there is only one fork, it is the whole
  // window of that fork.
  const double first = touches.size() > 1 ? window_ratio(*touches.front(), last) : 0;
  Part since_first = last_slices(last, first, kAll);
  if (since_first.time == 0) since_first = around_fork(last);
  const auto [low, high] = std::minmax({mean, since_first.share()});
  odds.share = (low + high) / 2;
  const auto holds = static_cast<double>(last.times);
  if (high == 0) {
    odds.is_over = touches.size() >= kEnoughForks && holds * (1 - first) >= kEnoughHolds * first;
    odds.range = {0, std::min(1.0, last.share * kSlack)};
    return;
  }
  const double part = last.share > 0 ? std::min(1.0, since_first.held / last.share) : 1;
  const double by_count = 1.5 / std::sqrt(std::max(1.0, holds * part));
  const double noise = std::max(by_count, 2 * error_of_mean(shares, mean) / high);
  odds.range.low = stretch(low, std::max(0.0, 1 - noise) / kSlack);
  odds.range.high = stretch(high, kSlack * (1 + noise));
}

void judge_forks(Odds& odds) {
  if (odds.forks == 0) return;
  const Chance range = wilson_interval(odds.taken, odds.forks);
  if (odds.share >= range.low && odds.share <= range.high) {
    if (odds.share == 0) odds.range.high = std::min(odds.range.high, range.high);
    return;
  }
  odds.is_by_forks = true;
  odds.is_over = false;
  odds.range = range;
}

bool has_lock(const model::Model& model, const model::Fork& fork, std::uint64_t address) {
  return std::ranges::any_of(fork.held, [&](const model::Held& held) {
    return model.locks[held.lock].address == address && !held.by_forking_thread && !held.may_be_own;
  });
}

}  // namespace

Chance wilson_interval(std::uint64_t taken, std::uint64_t tries) {
  constexpr double kZ = 1.96;
  const auto n = static_cast<double>(tries);
  const double p = static_cast<double>(taken) / n;
  const double middle = (p + kZ * kZ / (2 * n)) / (1 + kZ * kZ / n);
  const double half = kZ / (1 + kZ * kZ / n) * std::sqrt(p * (1 - p) / n + kZ * kZ / (4 * n * n));
  return {taken == 0 ? 0 : std::max(0.0, middle - half), taken == tries ? 1 : std::min(1.0, middle + half)};
}

Table::Table(const model::Model& model) : model_(model) {
  std::map<Key, Touches> touches;
  for (const RacyTouch& touch : model.racy_touches) touches[key_of(touch)].push_back(&touch);
  std::map<model::ProcessId, std::vector<const model::Fork*>> forks;
  for (const model::Fork& fork : model.forks) {
    const bool has_threads = !fork.lost_threads.empty() || fork.unknown_threads != 0;
    // If a process has missing records, records of held locks may be missing, too. So the forks of such a process are
    // not counted.
    if (has_threads && fork.error == 0 && !model.processes[fork.process].has_gaps) forks[fork.process].push_back(&fork);
  }
  for (auto& [key, of_lock] : touches) {
    std::ranges::stable_sort(of_lock, {}, [](const RacyTouch* touch) { return touch->window_ns; });
    Odds& odds = odds_[key];
    for (const model::Fork* fork : forks[key.first]) {
      ++odds.forks;
      if (has_lock(model, *fork, key.second)) ++odds.taken;
    }
    judge_time(of_lock, odds);
    judge_forks(odds);
  }
}

const Odds& Table::of(const RacyTouch& touch) const { return odds_.at(key_of(touch)); }

Table::Key Table::key_of(const RacyTouch& touch) const {
  return {model_.forks[touch.fork].process, model_.locks[touch.lock].address};
}

}  // namespace forksight::odds
